"""The frame of an HTML page that needs nothing but itself: no script, no font, no picture from elsewhere.

It is well-formed XML too. Whatever a user named (files, labels, expressions) goes through `text`.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Mapping, Sequence

PAGE = """<!DOCTYPE html>
<html lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --paper: #ffffff; --ink: #1c1c1c; --rule: #d5d5d5 }}
@media (prefers-color-scheme: dark) {{ :root {{ --paper: #16181c; --ink: #e4e4e4; --rule: #3d4148 }} }}
body {{ margin: 2em auto; max-width: 68em; padding: 0 1.2em; font: 15px/1.5 system-ui, sans-serif;
  background: var(--paper); color: var(--ink) }}
h1 {{ font-size: 1.5em; overflow-wrap: anywhere }}
h2 {{ font-size: 1.15em; margin-top: 2em }}
figure {{ margin: 1em 0; overflow-x: auto }}
figure svg {{ width: 100%; min-width: 40em; height: auto }}
.wide {{ overflow-x: auto }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ padding: .35em .8em .35em 0; border-bottom: 1px solid var(--rule); text-align: right; vertical-align: top;
  font-variant-numeric: tabular-nums }}
th {{ vertical-align: bottom }}
.word {{ text-align: left }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .2em 1.2em; margin: 0 }}
dt {{ opacity: .7 }}
dd {{ margin: 0; overflow-wrap: anywhere }}
{style}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def one_line(words: object, longest: int | None = None) -> str:
    """On one line; control characters, which XML does not allow, and broken ones are left out."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(words)).split())
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def text(words: object) -> str:
    """Text as text, whatever stands in it."""
    return html.escape(one_line(words))


def page(title: str, body: str, style: str = "") -> str:
    """A page; `title`, `body` and `style` are HTML and CSS already."""
    return PAGE.format(title=title, body=body, style=style)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[int] = ()) -> str:
    """A table of text; columns of `words` stand to the left, numbers to the right."""

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="word"' if k in words else "" for k in range(len(cells))]
        shown = (f"<{tag}{kind}>{text(cell)}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))
        return f"<tr>{''.join(shown)}</tr>"

    lines = "\n".join(line(row, "td") for row in rows)
    return (
        f'<div class="wide"><table>\n<thead>{line(headings, "th")}</thead>\n<tbody>\n{lines}\n</tbody>\n</table></div>'
    )


def paragraphs(sentences: Iterable[str]) -> str:
    """A list of remarks."""
    return "<ul>\n" + "\n".join(f"<li>{text(sentence)}</li>" for sentence in sentences) + "\n</ul>"


def definitions(facts: Mapping[str, str]) -> str:
    """Names and values."""
    return (
        "<dl>\n" + "\n".join(f"<dt>{text(name)}</dt><dd>{text(fact)}</dd>" for name, fact in facts.items()) + "\n</dl>"
    )
