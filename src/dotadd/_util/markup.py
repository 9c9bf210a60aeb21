"""HTML for pages and notebooks. Whatever a user named (labels, files, parameters) goes through `text`."""

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


def text(words: object, longest: int | None = None) -> str:
    """Text as text, whatever stands in it; control characters, which XML does not allow, are escapes."""
    return html.escape(one_line(words, longest))


def card(title: object, facts: Mapping[str, object]) -> str:
    """A heading, and names with values below it, as notebooks show an object."""
    rows = "".join(ROW.format(name=text(name), value=text(value, LONGEST)) for name, value in facts.items())
    return CARD.format(title=text(title, LONGEST), rows=rows)
