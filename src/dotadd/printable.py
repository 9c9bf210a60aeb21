"""What users bring (labels, names of files and columns, messages of other libraries) as it may stand on a terminal."""

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


def one_line(message: object) -> str:
    """A message of one line or several as one printable line."""
    return printable(_LINE_BREAK.sub(" ", str(message).strip()))


def as_written(label: object) -> str:
    """A label as it stood in the file: 1 and not 1.0."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
