"""The command line. Nothing heavy is imported before a command runs.

SIGTERM and SIGHUP are raised as Ctrl-C is, so that all that handles one handles all.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType
from typing import TextIO, cast

from cyclopts import App, CycloptsError

from dotadd._util import standard_input
from dotadd._util.forgiving import Closed, Forgiving, occupy_standard_streams
from dotadd.cli.calibrate import calibrate
from dotadd.cli.choosing import tune
from dotadd.cli.compare import compare
from dotadd.cli.completion import completion
from dotadd.cli.convert import convert, windows
from dotadd.cli.demo import demo
from dotadd.cli.doctor import doctor
from dotadd.cli.explain import explain
from dotadd.cli.inspect import inspect
from dotadd.cli.kmers import kmers
from dotadd.cli.predict import evaluate, predict, scan
from dotadd.cli.report import report
from dotadd.cli.screen import tell
from dotadd.cli.train import train
from dotadd.cli.variants import variants
from dotadd.cli.warmup import warmup
from dotadd.errors import DotaddError, one_line, printable

HELP = "Support vector machines in feature spaces that need not be stored, on data that does not fit in memory."
EPILOGUE = """\
Examples:

    dotadd demo
    dotadd train a9a -o a9a.dotadd
    dotadd evaluate a9a.dotadd a9a.t

Each command has its own --help. DOTADD_DEBUG=1 shows where an error came from.

Exit codes:

    0    done
    1    done, but the model is saved elsewhere for want of room; a demo
         that showed no gain; or a defect of dotadd, with a traceback
    2    refused or failed, for the reason in the line on stderr
    129  stopped by SIGHUP; train has saved the model so far
    130  stopped by Ctrl-C, in the same way
    141  nobody reads the output any more
    143  stopped by SIGTERM, in the same way
"""


def _version() -> str:
    from dotadd._version import __version__

    return f"dotadd {__version__}"


app = App(
    name="dotadd",
    help=HELP,
    help_epilogue=EPILOGUE,
    help_format="plaintext",
    version=_version,
    suppress_keyboard_interrupt=False,
)
COMMANDS: tuple[Callable[..., int | None], ...] = (
    train, tune, predict, evaluate, calibrate, convert, windows, scan, variants, inspect, explain, report, kmers,
    compare, demo, warmup, doctor, completion,
)  # fmt: skip
for place, command in enumerate(COMMANDS):
    app.command(command, sort_key=place, help_epilogue="")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, as EPILOGUE tells them."""
    warnings.showwarning = _tell
    streams = sys.stdout, sys.stderr
    if isinstance(sys.stdout, TextIOWrapper):  # letters that the encoding has not are escapes, as others are
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr = cast(TextIO, Forgiving(sys.stderr))  # nobody may be reading what is said there
    sys.stdout = cast(TextIO, Closed("standard output")) if sys.stdout is None else sys.stdout
    try:
        with raised():
            return _run(arguments)
    finally:
        standard_input.forget()
        sys.stdout, sys.stderr = streams


def _run(arguments: Sequence[str] | None) -> int:
    try:
        typed = standard_input.as_device(sys.argv[1:] if arguments is None else arguments)
        code = app(typed, result_action="return_value", exit_on_error=False, print_error=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except SystemExit as error:  # rich ends the process when it meets a broken pipe, as if something had failed
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        return 141
    except KeyboardInterrupt as error:
        return _complain("interrupted", 128 + getattr(error, "number", signal.SIGINT))  # as a shell tells it
    except CycloptsError as error:
        return _complain(f"{error} ({' '.join(('dotadd', *(error.command_chain or ())))} --help tells more)")
    except OSError as error:
        where = f"{printable(error.filename)}: " if error.filename is not None else ""
        return _complain(f"{where}{error.strerror or error}")
    except MemoryError as error:
        return _complain(f"out of memory {error}".strip())
    except DotaddError as error:
        return _complain(str(error))


def _tell(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as a line for people."""
    tell(one_line(message))


def _complain(message: str, code: int = 2) -> int:
    if os.environ.get("DOTADD_DEBUG"):
        raise
    tell(f"error: {one_line(message)}")
    return code


class SignalledError(KeyboardInterrupt):
    """A signal has arrived that asks the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def raised() -> Iterator[None]:
    """Here SIGTERM and SIGHUP raise SignalledError, unless they are ignored, as by nohup, or handled already."""
    terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def interrupt(number: int, frame: FrameType | None) -> None:
        if signal.Signals(number).name == "SIGHUP":  # the terminal is gone: what is written there would be an error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for descriptor in terminals:
                os.dup2(nowhere, descriptor)
            os.close(nowhere)
        raise SignalledError(number)

    numbers = []
    if threading.current_thread() is threading.main_thread():
        known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        numbers = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def main() -> None:
    """The console script."""
    occupy_standard_streams()
    sys.exit(run())
