"""dotadd inspect: what is in a model file."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

from cyclopts import Parameter


def inspect(
    model: str,
    /,
    *,
    largest: int = 10,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Show what a model file holds.

    Features, sizes, classes, how it was trained, and the largest weights.

    Examples:

        dotadd inspect a9a.dotadd
        dotadd inspect a9a.dotadd --largest 0
        dotadd inspect a9a.dotadd --json

    Parameters
    ----------
    model
        The model file.
    largest
        How many of the largest weights to list, for each class.
    as_json
        Everything as one JSON object.
    """
    from dotadd.errors import DotaddError
    from dotadd.model import load

    if largest < 0:
        raise DotaddError(f"--largest {largest}: give a number of weights, or 0 for none")
    inside = load(model).inspect(largest=largest)
    if as_json:
        sys.stdout.write(json.dumps(inside, indent=2) + "\n")
    else:
        show(model, inside)


def show(path: str, inside: dict[str, Any]) -> None:
    """The same for people."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from dotadd.cli.screen import facts, label_text, number

    labels = [label_text(label) for label in inside["classes"]]
    rows = labels[1:] if len(labels) == 2 else labels
    lines = {
        "model": path,
        "features": inside["features"],
        "data": _shape_text(**inside["shape"]),
        "classes": ", ".join(labels),
        "weights": f"{inside['dim']:,} slots of {inside['dtype']} for each of {len(rows)} problems"
        if len(rows) > 1
        else f"{inside['dim']:,} slots of {inside['dtype']}",
    }
    for name, value in (inside["training"] | inside["written"]).items():
        if value is not None:
            lines[name.replace("_", " ")] = _training_text(value)
    facts(lines)

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("class", "intercept", "|w|", "weights not zero"):
        table.add_column(name, justify="left" if name == "class" else "right")
    for k, label in enumerate(rows):
        norm, nonzeros = number(inside["norm"][k]), f"{inside['nonzeros'][k]:,}"
        table.add_row(Text(label), number(inside["intercept"][k]), norm, nonzeros)
    console = Console(file=sys.stdout, highlight=False)
    console.print(table)
    if any(inside["largest"]):
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title="largest weights", title_justify="left", title_style="dim")
        for label in rows:
            table.add_column(Text(f"slot ({label})"), justify="right")
            table.add_column("weight", justify="right")
        for place in range(max(map(len, inside["largest"]))):
            cells = []
            for column in inside["largest"]:
                slot, weight = column[place] if place < len(column) else (None, None)
                cells += ["" if slot is None else str(slot), "" if weight is None else number(weight)]
            table.add_row(*cells)
        console.print(table)


def _shape_text(kind: str, n_features: int | None, length: int | None) -> str:
    """What the model was trained on: sparse rows of 123 features, strings of up to 141 letters."""
    if n_features is not None:
        return f"{kind} of {n_features:,} features"
    return kind if length is None else f"{kind} of up to {length:,} letters"


def _training_text(value: Any) -> str:
    from dotadd.cli.screen import number

    if isinstance(value, dict):
        return ", ".join(f"{name} {_training_text(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_training_text(item) for item in value)
    return number(value) if isinstance(value, float) else str(value)
