"""A hook of mkdocs: writes what each command's --help says into the page that asks for it."""

from __future__ import annotations

import io
from typing import Any

PLACE = "<!-- commands -->"


def commands() -> str:
    """A section for each command, in the order of `dotadd --help`."""
    from rich.console import Console

    from dotadd.cli import COMMANDS, app

    def told(*tokens: str) -> str:
        screen = Console(file=io.StringIO(), width=110, color_system=None)
        app.help_print(list(tokens), console=screen)
        lines = (line.rstrip() for line in screen.file.getvalue().splitlines())  # type: ignore[attr-defined]  # StringIO
        return "```text\n" + "\n".join(lines).strip() + "\n```\n"

    names = [command.__name__ for command in COMMANDS]
    return "\n".join([told(), *(f"## dotadd {name}\n\n{told(name)}" for name in names)])


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(PLACE, commands()) if PLACE in markdown else markdown
