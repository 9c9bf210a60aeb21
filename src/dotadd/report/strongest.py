"""The strongest features of a linear model, by class, as a part of a page; for strings of one length it also shows
which k-mers matter where (positional oligomer importance), as a logo and as a map of colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dotadd.errors import DotaddError, as_written
from dotadd.explain.logo import stacked
from dotadd.genome.poim import SAMPLES, Poim, letter_chances, oligomer_importance
from dotadd.model.explanation import alphabet_of
from dotadd.model.naming import Feature, strongest_features
from dotadd.pictures.grids import heat
from dotadd.pictures.picture import COLORS
from dotadd.report.drawing import table, text

if TYPE_CHECKING:
    from dotadd.model.linear import Model
    from dotadd.sources.base import Source

LARGEST = 20
ROWS = 20_000  # that name the slots, and tell how frequent letters are
MOST_CLASSES = 12
PLANTED = 300_000  # strings that importance may score: the longest k-mers that this allows are looked at
MOST_LENGTH = 1_000  # letters that are drawn
LISTED = 8


def strongest_section(model: Model, source: Source | None, largest: int = LARGEST) -> str:
    """Tables of the largest weights; slots that are hashed have names where there are rows to name them by."""
    found = strongest_features(model, source, largest=largest, rows=ROWS)
    columns = _columns(model, source)
    names = [as_written(label) for label in model.classes.tolist()]
    parts, most = [], max((abs(f.weight) for row in found for f in row), default=0.0) or 1.0
    if model.two:
        for label, sign in ((names[1], 1.0), (names[0], -1.0)):
            mine = [feature for feature in found[0] if sign * feature.weight > 0.0]
            parts.append(f"<h3>for {text(label, 80)}</h3>" + _table(mine, columns, most))
    else:
        for label, features in list(zip(names, found, strict=True))[:MOST_CLASSES]:
            parts.append(f"<h3>{text(label, 80)}</h3>" + _table(features, columns, most))
        if len(names) > MOST_CLASSES:
            parts.append(f"<p>and {len(names) - MOST_CLASSES:,} more classes (dotadd inspect lists them)</p>")
    if source is None and any(not feature.names for row in found for feature in row):
        parts.append("<p>Slots that are hashed have names where there is data to name them by (--data).</p>")
    return f'<div class="columns">{"".join(f"<div>{part}</div>" for part in parts)}</div>'


def _columns(model: Model, source: Source | None) -> list[str] | None:
    if source is not None and source.columns is not None:
        return source.columns
    return model.columns.features if model.columns is not None and model.columns.dense else None


def _table(features: list[Feature], columns: list[str] | None, most: float) -> str:
    if not features:
        return "<p>none</p>"
    lines = []
    for feature in features:
        wide, color = 5.0 * abs(feature.weight) / most, COLORS[1 if feature.weight > 0.0 else 0]
        bar = f'<span class="bar" style="width:{wide:.2f}em;background:{color}"></span>'
        name = f'<td class="word">{text(_name(feature, columns), 80)}</td>'
        lines.append(f'<tr>{name}<td>{feature.weight:.4g}</td><td class="word">{bar}</td></tr>')
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'


def _name(feature: Feature, columns: list[str] | None) -> str:
    """The most frequent name in a slot, or its number; positions count from 1."""
    if not feature.names:
        return f"slot {feature.slot}"
    name, others = feature.names[0][0], len(feature.names) - 1 + feature.others
    more = f" and {others:,} more" if others > 0 else ""
    if name.text:
        shown = repr(name.text) if " " in name.text or not name.text.isprintable() else name.text
        return shown + (f" at {name.position + 1}" if name.position is not None else "") + more
    at = name.position or 0
    return (columns[at] if columns and at < len(columns) else f"x{at}") + more


def importance_section(model: Model, source: Source | None, n_jobs: int | None) -> str:
    """Which k-mers matter where, of the second class or of the first few; nothing where it cannot be told."""
    alphabet, length = alphabet_of(model), model.shape.length
    if alphabet is None or length is None or not model.shape.one_length or not 2 <= length <= MOST_LENGTH:
        return ""
    size = len(alphabet.letters)
    orders = [k for k in (1, 2, 3) if k <= length and SAMPLES * length * size**k <= PLANTED]
    if not orders:
        return ""
    try:
        chances = None if source is None else letter_chances(source, model, rows=ROWS)
        targets = [None] if model.two else model.classes.tolist()[:3]
        parts = []
        for target in targets:
            found = oligomer_importance(model, order=max(orders), chances=chances, target=target, n_jobs=n_jobs)
            parts.append(_importance(found, as_written(model.classes.tolist()[1] if target is None else target)))
    except DotaddError:  # a map or an alphabet that importance is not for
        return ""
    return "\n".join(parts)


def _importance(found: Poim, label: str) -> str:
    letters = np.where(found.possible(1), found.importance[0], 0.0)
    orders = len(found.importance)
    logo = stacked(found.letters, letters, f"what each letter adds to the score of {label}, at each position")
    title = f"largest change of the score of {label} by k-mers of each length"
    drawn = heat(found.differential(), [str(k) for k in range(1, orders + 1)], title, "position, counted from 1")
    strongest = [one for k in range(max(1, orders - 1), orders + 1) for one in found.strongest(k, LISTED)]
    rows = [[one.text, str(one.position + 1), f"{one.importance:+.3g} ± {one.error:.2g}"] for one in strongest]
    return f'<figure class="long">{logo}</figure><figure class="long">{drawn.svg}</figure>' + table(
        ["k-mer", "position", "changes the score by"], rows, words=(0,)
    )
