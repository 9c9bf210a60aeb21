"""Fields of a line of CSV, quotes and all.

Python's own reader has one limit for the length of a field for the whole process, and raising it for one line races
with every other thread that does so.
"""

from __future__ import annotations

import re

_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)("?)')
_NEWLINE = re.compile(r"\r\n|\n|\r")
_PLAIN = {delimiter: re.compile(rf"[^{delimiter}\r\n]*") for delimiter in (",", ";", "\t")}


def fields_of(text: str, delimiter: str, at: int = 0, *, cut: bool = False) -> tuple[list[str], int]:
    """The fields of the record that begins at a place, and the place behind it; ValueError where quotes are wrong.

    A field that begins with a quote ends with the next one that is not doubled, and with `cut`, where the text does.
    """
    found: list[str] = []
    while True:
        quoted = _QUOTED.match(text, at)
        if quoted is None:
            plain = _PLAIN[delimiter].match(text, at)
            assert plain is not None  # it matches nothing, too
            found.append(plain[0])
            at = plain.end()
        elif quoted[2] or cut:
            found.append(quoted[1].replace('""', '"'))
            at = quoted.end()
        else:
            raise ValueError("a quote is not closed")
        if at == len(text):
            return found, at
        if newline := _NEWLINE.match(text, at):
            return found, newline.end()
        if text[at] != delimiter:
            raise ValueError(f"{delimiter!r} expected after a quote")
        at += 1
