"""Words for people: numbers and times, and HTML for pages and notebooks.

Whatever a user named (labels, files, parameters) goes through `text` before it becomes HTML or SVG.
"""

from __future__ import annotations

import html
from collections.abc import Mapping

from dotadd.errors import one_line

LONGEST = 400  # letters of a value on a card
CARD = (
    '<div style="font:13px/1.5 system-ui,sans-serif;overflow-wrap:anywhere"><b>{title}</b>'
    '<table style="border-collapse:collapse;margin:.2em 0">{rows}</table></div>'
)
ROW = (
    '<tr><td style="text-align:left;vertical-align:top;padding:0 1em 0 0;opacity:.7">{name}</td>'
    '<td style="text-align:left;vertical-align:top;padding:0">{value}</td></tr>'
)


def number(value: float | None, digits: int = 6) -> str:
    """A measured number, short."""
    return "-" if value is None or value != value else f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """Seconds below two minutes, then minutes and hours."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"


def text(words: object, longest: int | None = None) -> str:
    """Text as text, whatever stands in it; control characters, which XML does not allow, are escapes."""
    return html.escape(one_line(words, longest))


def card(title: object, facts: Mapping[str, object]) -> str:
    """A heading, and names with values below it, as notebooks show an object."""
    rows = "".join(ROW.format(name=text(name), value=text(value, LONGEST)) for name, value in facts.items())
    return CARD.format(title=text(title, LONGEST), rows=rows)
