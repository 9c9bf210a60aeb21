"""Parts as a worker holds them: what memory each may take, and that holding and letting go disturb nobody."""

import threading
from types import SimpleNamespace

import pytest
from clusters import data, even, write_parts

from dotadd.cluster import held
from dotadd.cluster.engine import Replies
from dotadd.cluster.held import Holder, NoReply, Recipe, call, held_here
from dotadd.cluster.partitions import Partitions
from dotadd.cluster.requests import Describe
from dotadd.errors import DataError

FREE = 80_000_000


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """This process as a worker with 80 MB free: worker(planned) -> a part that was asked for its outline."""
    X, y = data(n=30)
    pattern = write_parts(tmp_path, X, y, even(30, 1))
    monkeypatch.setattr(held, "_held", {})
    monkeypatch.setattr(held, "available", lambda: FREE - sum(_filled()))
    kept = []

    def made(planned, memory=None, neighbours=1):
        names = Partitions.of(pattern)
        kept.append(
            Holder(
                f"part-{len(kept)}", Recipe(0, (str(tmp_path / "part-0.svm"),), names, memory, 1, planned, neighbours)
            )
        )
        return f"part-{len(kept) - 1}"

    yield made
    kept.clear()  # now, or else parts of a later test go by these names


def asked(token, sequence=1):
    return call(token, sequence, 0, Describe())


def loaded(token):
    """As if the part had filled all of the memory that it was given, which is less that is free then."""
    assert isinstance(asked(token), Replies)
    rows = held._held[token].part.rows
    rows._data = SimpleNamespace(nbytes=rows.memory)
    return rows.memory


def _filled():
    return [one.part.rows._data.nbytes for one in held._held.values() if one.part is not None and one.part.rows._data]


@pytest.mark.parametrize("memory", [None, 8_000_000])
@pytest.mark.parametrize("planned", [[2, 2], [3, 3, 3, None], [1, None, None, None], [None, None, 2, 2], [2, None, 2]])
def test_parts_of_one_worker_never_take_more_than_the_worker_may(worker, planned, memory):
    given = [loaded(token) for token in [worker(one, memory) for one in planned]]
    assert sum(given) <= (FREE // 2 if memory is None else memory)
    assert min(given) >= 100_000


def test_workers_on_one_machine_share_what_is_free(worker):
    assert loaded(worker(1, neighbours=4)) <= FREE // 8


def test_planned_parts_get_equal_shares_however_late_they_are_loaded(worker):
    assert len({loaded(token) for token in [worker(4) for _ in range(4)]}) == 1


def test_parts_may_come_and_go_while_others_look_at_what_is_held(worker):
    stop, errors = threading.Event(), []

    def look():
        while not stop.is_set():
            try:
                held_here()
                held._room(held._held["part-0"])
            except Exception as error:
                errors.append(error)
                return

    worker(1)
    watchers = [threading.Thread(target=look) for _ in range(3)]
    for one in watchers:
        one.start()
    for number in range(3000):
        holder = Holder(f"guest-{number % 7}", held._held["part-0"].recipe)
        del holder
    stop.set()
    for one in watchers:
        one.join()
    assert not errors
    assert held_here() == {"part-0"}


def test_an_error_in_a_part_comes_back_as_one_line_with_file_and_line(worker, tmp_path):
    (tmp_path / "part-0.svm").write_text("1 1:2\n-1 2:x\n")
    reply = asked(worker(1))
    number, failed = reply.failed
    assert number == 0
    assert isinstance(failed.error, DataError)
    assert str(failed.error).startswith(f"{tmp_path / 'part-0.svm'}:2")
    assert "\n" not in str(failed.error)


def test_a_call_out_of_order_or_to_a_part_that_is_not_here_finds_it_gone(worker):
    token = worker(1)
    assert isinstance(asked(token, sequence=5), Replies)
    assert asked(token, sequence=5) == asked("another") == NoReply()
    assert asked(token, sequence=6).told[0].tally.rows == 30
