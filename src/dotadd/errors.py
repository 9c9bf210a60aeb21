"""What can be wrong with what a user gives us. Each error is one line that says where and what to do."""

from __future__ import annotations

from dotadd.printable import one_line, printable


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


class NotConvergedWarning(UserWarning):
    """Training ended before the tolerance was reached; the message quotes the gap."""


class UntrainedClassWarning(UserWarning):
    """Training ended before it came to some of the classes; they are never predicted."""


class IndefiniteKernelWarning(UserWarning):
    """The kernel is no inner product in any space, so that what training finds need not be the best there is."""


class StreamingWarning(UserWarning):
    """Data is larger than the memory for it: the message says what is read instead, and what is written beside it."""
