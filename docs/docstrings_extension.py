"""An extension of mkdocstrings: lines "name: what it is" of a docstring become a list, and <w, phi> no tag."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from griffe import Extension, Object

NAMED = re.compile(r'^( +)("\w+"): (.*)$', re.MULTILINE)
LINE = re.compile(r"^([A-Za-z_]\w*(?:, \w+)*): (.*)$")


def listed(text: str) -> str:
    """The same, with an item for each such line and for what is indented below it."""
    lines: list[str] = []
    inside = False
    for number, line in enumerate(text.split("\n")):
        found = LINE.match(line) if number else None  # the first line is a sentence
        if found:
            lines += [] if inside or not lines or not lines[-1] else [""]
            lines.append(f"- **{found[1]}**: {found[2]}")
            inside = True
        elif inside and line.startswith("    "):
            lines.append(f"  {line.strip()}")
        else:
            lines += ["", line] if inside and line else [line]
            inside = False
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Outside of code, a bracket before a letter begins no tag."""
    parts = text.split("`")
    return "`".join(part if k % 2 else re.sub(r"<(?=\w)", "&lt;", part) for k, part in enumerate(parts))


def choices(text: str) -> str:
    """Lines `"name": what it is` below a parameter become a list."""
    first = NAMED.search(text)
    listed = NAMED.sub(r"\1- `\2`: \3", text)
    return text if first is None else f"{listed[: first.start()]}\n{listed[first.start() :]}"


class Readable(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is None:
            return
        text = obj.docstring.value
        if obj.is_class and obj.path.startswith("dotadd.estimators."):  # their solvers are put in on loading
            text = inspect.getdoc(getattr(importlib.import_module(obj.module.path), obj.name)) or text
        obj.docstring.value = escaped(choices(text) if "\n---" in text else listed(text))
