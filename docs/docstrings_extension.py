"""An extension of mkdocstrings: lines "name: what it is" of a docstring become a list, and <w, phi> no tag."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from griffe import Extension, Object

LINE = re.compile(r"^([A-Za-z_]\w*(?:, \w+)*): (.*)$")


def listed(text: str) -> str:
    """The same, with an item for each such line and for what is indented below it."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        found = LINE.match(line)
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


class Readable(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is None:
            return
        text = obj.docstring.value
        if obj.is_class and obj.path.startswith("dotadd.estimators."):  # their solvers are put in on loading
            text = inspect.getdoc(getattr(importlib.import_module(obj.module.path), obj.name)) or text
        obj.docstring.value = escaped(text if "\n---" in text else listed(text))
