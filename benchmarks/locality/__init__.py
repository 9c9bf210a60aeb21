"""Where w is touched: what was tried to spare cache misses, each idea measured alone.

Windows of 141 letters around AG: of human chromosome 19 if it is in the folder DOTADD_DATA, simulated ones otherwise.
Weighted degree features of degree 20, 2,630 of them a window, hashed to 12 bits (w of 46 MB) and to 16 bits (739 MB).
Times are nanoseconds a feature, or seconds where it says so: the best of several runs, the programs of a table taken in
turn, without compiling and without reading.

    python -m benchmarks.locality [--tiny] [--rows N] [--repeat N]
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks.locality import block_method, growing, standing, visits
from benchmarks.locality.measuring import Setting, setting


def report(*, tiny: bool = False, rows: int | None = None, repeat: int | None = None) -> str:
    """The tables, in Markdown."""
    given = setting(tiny, rows, repeat)
    sections: list[tuple[str, Callable[[Setting], str]]] = [
        ("DOT of many windows while w stands still", standing.report),
        ("Visits: the order of the slots", visits.layouts),
        ("Visits: prefetch, pages, precision", visits.memory),
        ("Visits: where the expansion is done", visits.expansion),
        ("The block method", block_method.report),
        ("Training: a growing sample against all rows", growing.report),
    ]
    parts = []
    for title, run in sections:
        sys.stderr.write(f"{title} ...\n")
        parts.append(f"### {title}\n\n{run(given)}")
    return "\n".join(parts)
