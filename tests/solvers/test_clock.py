"""The clock of a run: signals are obeyed between two steps and none is lost, and time is shared out."""

# ruff: noqa: PT012, what is tested is where in a block a signal is raised

import os
import signal
import threading

import numpy as np
import pytest

from dotadd._util.interrupts import Interrupts
from dotadd.estimators.course import Course
from dotadd.estimators.notebook import followed
from dotadd.solvers import clock as clocks
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.result import Reason

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def press(number=signal.SIGINT):
    os.kill(os.getpid(), number)


class Told(BaseException):
    """What a handler of somebody else raises."""


@pytest.fixture
def handlers():
    """Set handlers, which are those of before in the end."""
    before = {}

    def handle(number, handler):
        before.setdefault(number, signal.signal(number, handler))

    yield handle
    for number, handler in before.items():
        signal.signal(number, handler)


def raising(*_):
    raise Told


@pytest.fixture
def time(monkeypatch):
    """Seconds that pass when the test says so."""
    now = [0.0]
    monkeypatch.setattr(clocks, "perf_counter", lambda: now[0])

    def wait(seconds):
        now[0] += seconds

    return wait


def test_ctrl_c_waits_for_the_next_check_and_then_ends_the_work():
    steps = []
    with Clock() as clock:
        clock.check()
        press()
        steps.append("the step in which it was pressed")
        with pytest.raises(StoppedError) as stopped:
            clock.check()
        assert stopped.value.reason is Reason.INTERRUPTED
        with pytest.raises(StoppedError):
            clock.check()
    assert steps
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_that_nobody_has_obeyed_is_raised_at_the_end():
    ended = []
    with pytest.raises(KeyboardInterrupt), Clock() as clock:
        clock.check()
        press()
        ended.append(1)
    assert ended
    with pytest.raises(KeyboardInterrupt), Clock():  # a search that counts errors and goes on must not lose it
        press()
        raise ValueError


def test_a_second_ctrl_c_before_the_first_was_obeyed_is_raised_at_once():
    with pytest.raises(KeyboardInterrupt), Clock():
        press()
        press()
        pytest.fail("it went on")


def test_before_the_first_step_ctrl_c_is_raised_at_once():
    with pytest.raises(KeyboardInterrupt), Interrupts():
        press()
        pytest.fail("it went on")


def test_a_handler_that_does_not_raise_is_called_between_two_steps_and_the_work_goes_on(handlers):
    called = []
    handlers(signal.SIGTERM, lambda number, frame: called.append(number))
    with Clock() as clock:
        press(signal.SIGTERM)
        assert not called
        clock.check()
        assert called == [signal.SIGTERM]
        clock.check()


def test_what_a_handler_raises_is_what_the_caller_gets_when_the_work_is_kept(handlers):
    handlers(signal.SIGTERM, raising)
    kept = []

    @followed(Course)
    def work(_):
        with Clock() as clock:
            press(signal.SIGTERM)
            with pytest.raises(StoppedError):
                clock.check()
        kept.append(1)

    with pytest.raises(Told):
        work(None)
    assert kept


def test_a_signal_after_the_last_step_is_raised_when_the_work_is_kept():
    kept = []

    @followed(Course)
    def work(_):
        with Clock() as clock:
            clock.check()
        press()
        kept.append(1)

    with pytest.raises(KeyboardInterrupt):
        work(None)
    assert kept


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_signals_that_no_python_code_handles_are_left_alone(handlers, handler):
    handlers(signal.SIGHUP, handler)
    with Clock():
        assert signal.getsignal(signal.SIGHUP) is handler
        if handler is signal.SIG_IGN:
            press(signal.SIGHUP)


def test_outside_the_main_thread_nothing_changes_but_time():
    found = []

    def work():
        with Clock(1e-9) as clock:
            found.append(signal.getsignal(signal.SIGINT))
            with pytest.raises(StoppedError) as stopped:
                clock.check()
            found.append(stopped.value.reason)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler, Reason.MAX_TIME]


def test_the_proof_comes_after_the_first_ctrl_c_and_ends_with_the_second():
    with Clock() as clock:
        press()
        with clock.proof():
            pass
        with pytest.raises(StoppedError), clock.proof():
            press()
            pytest.fail("it went on")


def test_there_is_no_proof_after_sigterm(handlers):
    handlers(signal.SIGTERM, raising)
    with Clock() as clock:
        press(signal.SIGTERM)
        with pytest.raises(StoppedError), clock.proof():
            pytest.fail("it was begun")


def test_what_changes_nothing_may_be_left_anywhere_and_other_errors_are_what_they_are():
    with Clock() as clock:
        with pytest.raises(StoppedError) as stopped, clock.anywhere():
            press()
            pytest.fail("it went on")
        assert stopped.value.reason is Reason.INTERRUPTED
    with Clock() as clock, pytest.raises(Told), clock.anywhere():
        raise Told


def test_a_callback_that_raises_keyboard_interrupt_is_obeyed_at_the_next_check_and_gets_it_back():
    theirs = KeyboardInterrupt("enough")

    def enough(*_):
        raise theirs

    @followed(Course)
    def work(_):
        with Clock() as clock:
            clock.tell(enough, 1, 2)
            with pytest.raises(StoppedError):
                clock.check()

    with pytest.raises(KeyboardInterrupt) as raised:
        work(None)
    assert raised.value is theirs
    with pytest.raises(Told), Clock() as clock:
        clock.tell(raising)


def test_time_is_up_when_it_is(time):
    clock = Clock(10.0)
    time(10.0)
    clock.check()
    time(0.1)
    with pytest.raises(StoppedError) as stopped:
        clock.check()
    assert stopped.value.reason is Reason.MAX_TIME
    assert clock.elapsed() == pytest.approx(10.1)
    assert clock.left() == 0.0
    assert Clock().left() is None


def test_each_of_several_parts_gets_its_share_of_what_is_left(time):
    clock = Clock(10.0)
    left = []
    for n, taken in enumerate([1.0, 2.0, 9.0, 0.0]):
        share = clock.share(4 - n)
        left.append(share.left())
        time(taken)
    assert left == [10 / 4, 9 / 3, 7 / 2, 0.0]
    assert Clock().share(3).limit == np.inf


def test_seconds_are_counted_by_phase_whatever_ends_it(time):
    clock = Clock()
    for phase, seconds in (("read", 1.0), ("sweep", 2.0), ("read", 4.0)):
        with pytest.raises(ValueError, match="stop"), clock.timed(phase):
            time(seconds)
            raise ValueError("stop")
    assert clock.seconds == {"read": 5.0, "sweep": 2.0}
