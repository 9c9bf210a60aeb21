"""What can be wrong with what a user gives us. Each error is one line that says where and what to do.

Whatever users bring (labels, names of files and columns, messages of other libraries) is made `printable` on its way
to a terminal or into an error.
"""

from __future__ import annotations

import re

# What moves the cursor or gives orders to a terminal, ends a line, turns the direction of writing, has no width, or is
# half a character. Spaces, joiners and letters that this Python has not heard of are left: people write with them.
_UNSAFE = re.compile(
    "[\0-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\uffff]"
)
_LINE_BREAK = re.compile(r"\s*\n\s*")


def printable(text: object) -> str:
    r"""The text with an escape such as \n, \x1b or \u202e for each character that a terminal would not just show."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def one_line(message: object, longest: int | None = None) -> str:
    """A message of one line or several as one printable line, cut off where it is longer than this."""
    line = printable(_LINE_BREAK.sub(" ", str(message).strip()))
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def as_written(label: object) -> str:
    """A label as it stood in the file: 1 and not 1.0."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


class DotaddError(ValueError):
    """Bad input of any kind. The command line prints it as one line and exits with code 2."""

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message))


class DataError(DotaddError):
    """Something in the data cannot be used; the message names file, line and column where there are any."""

    def __init__(self, message: str, path: str | None = None, line: int | None = None, column: int | None = None):
        message = _shortened(message)
        where = ":".join(printable(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{where}: {message}" if where else message)
        self.path, self.line, self.column = path, line, column


def _shortened(message: str, most: int = 800) -> str:
    """A message without the middle where it quotes something very long."""
    return message if len(message) <= most else f"{message[: most // 2]} ... {message[-most // 2 :]}"


class FeatureError(DotaddError):
    """A feature map, or the expression that describes one, cannot be used."""


class AutomatonError(DotaddError):
    """An automaton is not well formed, or not of the kind that an operation needs."""


class ModelError(DotaddError):
    """A model file is damaged, foreign, or does not fit the data."""


class UnusedColumnsWarning(UserWarning):
    """Columns of text stand beside the numbers that are read as features."""


class CutOffWarning(UserWarning):
    """A compressed file (BGZF) seems to lack its end: what there is of it is read."""


class UnusedFilesWarning(UserWarning):
    """Files in a folder are left out: hidden ones, and those that cannot have a label."""


class NotConvergedWarning(UserWarning):
    """Training ended before the tolerance was reached; the message quotes the gap."""


class UntrainedClassWarning(UserWarning):
    """Training ended before it came to some of the classes; they are never predicted."""


class IndefiniteKernelWarning(UserWarning):
    """The kernel is no inner product in any space, so that what training finds need not be the best there is."""


class StreamingWarning(UserWarning):
    """Data is larger than the memory for it: the message says what is read instead, and what is written beside it."""


# Packages that only some work needs, and the extra that brings them.
EXTRAS = {
    "matplotlib": "plots",
    "PIL.Image": "images",
    "distributed": "dask",
    "pybigtools": "genomics",
    "pysam": "genomics",
    "dotadd_kernels": "kernels",
}
NAMES = {"PIL.Image": "pillow", "distributed": "Dask", "dotadd_kernels": "dotadd-kernels"}


def require_extra(module: str, what: str, instead: str = "") -> None:
    """Raise a line with the command that installs this module, unless it is there. Called before the work begins."""
    try:
        __import__(module)
    except ImportError as error:
        name = NAMES.get(module, module)
        raise DotaddError(f"{what} {name}: pip install 'dotadd[{EXTRAS[module]}]'{instead}") from error
