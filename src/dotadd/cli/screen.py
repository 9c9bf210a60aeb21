"""How results look: for people as aligned lines of a name and a value and as tables, for programs as one JSON object on
standard output. What users bring is printable before it is shown, and messages go to standard error.

Numbers in tables are never cut: names are folded, and columns that do not fit stand in a table below.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Literal, TextIO, cast

from cyclopts import Parameter

from dotadd._util.forgiving import Forgiving
from dotadd._util.standard_input import named
from dotadd._util.wording import duration as duration
from dotadd._util.wording import number as number
from dotadd.errors import as_written, printable

TELLS = "The summary as one JSON object on standard output; messages are on standard error."
Json = Annotated[bool, Parameter(name="--json", negative="", show_default=False, help=TELLS)]


def tell(message: str) -> None:
    """A line for people on stderr."""
    sys.stderr.write(f"dotadd: {printable(named(message))}\n")


@contextmanager
def lenient_screen() -> Iterator[None]:
    """While this lasts, what is shown on stdout is beside the point, and it is no error if it cannot be."""
    stdout = sys.stdout
    sys.stdout = cast(TextIO, Forgiving(stdout, lambda why: tell(f"the summary cannot be shown: {why}")))
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout = stdout


def facts(lines: Mapping[str, str]) -> None:
    """A line for each name and value on stdout; names are dim on a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    width = max(len(name) for name in lines)
    for name, value in lines.items():
        console.print(Text.assemble((f"{name:<{width}}  ", "dim"), printable(value)), soft_wrap=True)


def write_json(record: Mapping[str, object]) -> None:
    """Show this object; numbers that are not finite become null."""
    from dotadd.model.file import jsonable

    sys.stdout.write(json.dumps(jsonable(record), indent=2, allow_nan=False) + "\n")


def label_text(label: object) -> str:
    """A label as it stood in the file, for people."""
    return printable(as_written(label))


FOLD, NARROW = 40, 12  # letters in a line of a name, and where there is no room for these
USUAL = 80  # letters in a line of what is no terminal, where names are to be folded anyway
LONGEST = 200  # letters of a name that are shown at all
BETWEEN, EDGES = 3, 2  # blanks between two columns, and at both ends of a line


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: Collection[int] = (0,),
    keys: int = 1,
    title: str | None = None,
) -> None:
    """Columns of `words` hold names and stand to the left, all others numbers. The first `keys` columns are there again
    in each table. What is no terminal has all the room that is needed."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    columns = [[shortened(cell) for cell in column] for column in zip(headings, *rows, strict=True)]
    room = console.width if console.is_terminal else None
    widths = _widths(columns, words, room)
    for shown in _tables(widths, keys, room):
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="dim")
        table.title = None if title is None else Text(shortened(title))
        for k in shown:
            justify: Literal["left", "right"] = "left" if k in words else "right"
            table.add_column(Text(columns[k][0]), justify=justify, width=widths[k], overflow="fold")
        for row in list(zip(*(columns[k] for k in shown), strict=True))[1:]:
            table.add_row(*map(Text, row))
        console.width = max(console.width, _total([widths[k] for k in shown]))
        console.print(table)


def shortened(text: str, longest: int = LONGEST) -> str:
    """Printable text that is not endless."""
    shown = printable(text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _widths(columns: Sequence[Sequence[str]], words: Collection[int], room: int | None) -> list[int]:
    """Of each column. Names have less if not all columns would fit, and headings as little as lets them fit."""
    from rich.cells import cell_len

    def at_most(name: int, heading: int, *, folded: bool = False) -> list[int]:
        widths = []
        for k, (first, *cells) in enumerate(columns):
            top = max(map(cell_len, first.split() if folded else [first]), default=0)
            body = max(map(cell_len, cells), default=0)
            widths.append(max(1, min(max(top, body), name) if k in words else max(body, min(top, heading))))
        return widths

    whole, wide = at_most(LONGEST, FOLD), at_most(FOLD, FOLD)
    if _total(whole) <= (room or USUAL):
        return whole
    if room is None or _total(wide) <= room:
        return wide
    name = min(FOLD, max(NARROW, room // 3))
    narrow, folded = at_most(name, NARROW), at_most(name, NARROW, folded=True)
    return folded if _total(folded) <= room else narrow


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + BETWEEN * (len(widths) - 1) + EDGES


def _tables(widths: Sequence[int], keys: int, room: int | None) -> Iterator[list[int]]:
    """Which columns stand in each table: the keys, and at least one more if there is one."""
    first = list(range(keys))
    shown = list(first)
    for k in range(keys, len(widths)):
        if room is not None and len(shown) > keys and _total([widths[j] for j in (*shown, k)]) > room:
            yield shown
            shown = list(first)
        shown.append(k)
    yield shown
