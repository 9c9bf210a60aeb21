"""dotadd inspect: what is in a model file, the names of its strongest features, and a picture of what matters where."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dotadd._util.atomic import require_writable
from dotadd.cli.options import Count, Reading, Whole, tell_skipped
from dotadd.cli.progress import Bar
from dotadd.cli.screen import Json, facts, label_text, number, show_table, write_json
from dotadd.errors import DotaddError, as_written, printable

if TYPE_CHECKING:
    from dotadd.model.file import Record
    from dotadd.model.linear import Model
    from dotadd.model.naming import Feature
    from dotadd.sources.base import Source

NAMES_TOLD = 10  # of each slot, in JSON


def inspect(
    model: str,
    /,
    *,
    largest: Whole = 10,
    data: str | None = None,
    rows: Annotated[Count | None, Parameter(show_default=False)] = None,
    poim: str | None = None,
    order: Annotated[Count | None, Parameter(show_default=False)] = None,
    samples: Annotated[Count | None, Parameter(show_default=False)] = None,
    target: Annotated[str | None, Parameter(name="--class")] = None,
    jobs: Whole | None = None,
    as_json: Json = False,
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Show what a model file holds and what it has learned.

    Features, sizes, classes, how it was trained, and the largest weights; of a
    kernel machine the kernel and how many support vectors each class has. A pass
    over data tells which k-mers or words fall into the slots of hashed weights.
    --poim draws how much each k-mer at each position changes the score
    (positional oligomer importance, for maps of strings); pictures need matplotlib:

        pip install 'dotadd[plots]'

    Examples:

        dotadd inspect a9a.dotadd --largest 0
        dotadd inspect a9a.dotadd --json
        dotadd inspect sites.dotadd --data sites.arrow --largest 20
        dotadd inspect sites.dotadd --data sites.arrow --poim sites.svg

    Parameters
    ----------
    model
        The model file.
    largest
        How many of the largest weights to list, for each class.
    data
        A file of examples such as the model was trained on. Names the slots of hashed weights, and gives the random
        strings of --poim its letters, as frequent at each position as in the data.
    rows
        Read so many of its first rows; 100,000 by default.
    poim
        Draw positional oligomer importance to this file: .svg, .png, .pdf or .html.
    order
        The longest k-mers to draw; 3 by default. Each more takes as many times longer as there are letters.
    samples
        Random strings to put each k-mer into; 50 by default. More are slower and more exact.
    target
        The class whose score to draw, if there are more than two.
    jobs
        Threads; all cores by default.
    """
    from dotadd.model.kernel import KernelModel
    from dotadd.model.linear import load
    from dotadd.model.naming import ROWS, strongest_features

    if largest < 0:
        raise DotaddError(f"--largest {largest}: give a number of weights, or 0 for none")
    if data is None and (rows is not None or reading != Reading()):
        raise DotaddError("--rows and how to read data mean nothing without --data")
    if poim is None and not (order is samples is target is jobs is None):
        raise DotaddError("--order, --samples, --class and --jobs mean nothing without --poim")
    if poim is not None:
        from dotadd.report.poim import require_drawable

        require_drawable(poim)
        require_writable(poim)
    rows = ROWS if rows is None else rows
    loaded = load(model)
    if isinstance(loaded, KernelModel):
        if data is not None or poim is not None:
            message = "a kernel machine has no weights of features that --data or --poim could tell of"
            raise DotaddError(f"{model}: {message}")
        if as_json:
            write_json(loaded.inspect())
        else:
            show(model, loaded.inspect())
        return
    source = None if data is None or not largest else opened(data, reading, loaded)
    if source is None:
        features = strongest_features(loaded, largest=largest)
    else:
        with Bar(f"reading {data}") as bar:
            features = strongest_features(
                loaded, source, largest=largest, rows=rows, on_progress=lambda done: bar(done / rows)
            )
        tell_skipped(source)
    if poim is not None:
        draw(loaded, model, poim, data, rows, reading, order, samples, target, jobs)
    inside = loaded.inspect(largest=0) | {"largest": [[(item.slot, item.weight) for item in row] for row in features]}
    if as_json:
        inside["strongest"] = [[_feature_json(feature, inside["classes"]) for feature in row] for row in features]
        write_json(inside)
    else:
        show(model, inside)
        names = loaded.feature_names or (None if source is None else source.columns)
        show_strongest(features, inside, source is not None, names)
        if poim is not None:
            facts({"picture": poim})


def opened(data: str, reading: Reading, model: Model) -> Source:
    """The data, read as that which the model was trained on."""
    return reading.open([data], model.like(labels=True), read_as=model.read_as)


def draw(
    model: Model,
    name: str,
    path: str,
    data: str | None,
    rows: int,
    reading: Reading,
    order: int | None,
    samples: int | None,
    target: str | None,
    jobs: int | None,
) -> None:
    """Positional oligomer importance as a picture."""
    from dotadd.genome.poim import ORDER, SAMPLES, letter_chances, oligomer_importance
    from dotadd.report.poim import draw_poim

    order, samples = order or ORDER, samples or SAMPLES
    labels: dict[str | None, object] = {as_written(label): label for label in model.classes.tolist()}
    wanted = labels.get(target, target)  # as the model has it, whose labels may be numbers
    chances = None if data is None else letter_chances(opened(data, reading, model), model, rows=rows)
    with Bar(f"scoring k-mers of {order} letters") as bar:
        found = oligomer_importance(
            model, order=order, samples=samples, chances=chances, target=wanted, n_jobs=jobs, on_progress=bar
        )
    score = target if target is not None else label_text(model.classes.tolist()[-1])
    letters = "all equally frequent" if data is None else f"as frequent at each position as in {os.path.basename(data)}"
    subtitle = f"change Q of the score of class {score} by a k-mer in {samples} random strings, letters {letters}"
    draw_poim(found, path, title=f"Positional oligomer importance in {os.path.basename(name)}", subtitle=subtitle)


def show(path: str, inside: Record) -> None:
    """The same for people."""
    from dotadd.report.record import shape_text

    labels, several = [label_text(label) for label in inside["classes"]], inside.get("several_labels")
    rows = labels[1:] if len(labels) == 2 and several is None else labels
    data = {"data": shape_text(**inside["shape"]), "classes": ", ".join(labels)}
    if several is not None:
        apart = inside["separator"]
        given = several if apart is None else f"with {apart!r} between them"
        data = {"data": data["data"], "labels": f"several a row, {given}: {data['classes']}"}
    if machine := "kernel" in inside:
        vectors = vectors_text(inside["support"], inside["classes"])
        lines = {"model": path, "kernel": inside["kernel"], **data, "vectors": vectors}
        if len(rows) == 1:
            lines["intercept"] = number(inside["intercept"][0])
    else:
        weights = f"{inside['dim']:,} slots of {inside['dtype']}"
        weights += f" for each of {len(rows)} problems" * (len(rows) > 1)
        lines = {"model": path, "features": inside["features"], **data, "weights": weights}
    for name, value in (inside["training"] | inside["written"]).items():
        if value is not None:
            lines[name.replace("_", " ")] = training_text(value)
    if inside["probability"] is not None:
        lines["probability"] = inside["probability"]
    if (cut := inside["threshold"]) is not None:
        lines["threshold"] = f"{number(cut['value'])} for {cut['purpose']}"
    facts(lines)
    if machine:
        return
    measures = zip(inside["intercept"], inside["norm"], inside["nonzeros"], strict=True)
    cells = [[number(intercept), number(norm), f"{nonzeros:,}"] for intercept, norm, nonzeros in measures]
    headings = ("class" if several is None else "label", "intercept", "|w|", "weights not zero")
    show_table(headings, [[label, *row] for label, row in zip(rows, cells, strict=True)])


def vectors_text(counts: list[int], labels: list[object]) -> str:
    """How many support vectors there are, and of which classes."""
    each = ", ".join(f"{count:,} of {label_text(label)}" for count, label in zip(counts, labels, strict=True))
    return f"{sum(counts):,} support vectors: {each}"


def training_text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {training_text(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(training_text(item) for item in value)
    return number(value) if isinstance(value, float) else str(value)


def show_strongest(features: list[list[Feature]], inside: Record, read: bool, names: list[str] | None) -> None:
    """The largest weights with the names of their slots, a table for each class. `names` are those of columns."""
    from dotadd.data.batches import Strings
    from dotadd.data.table import Table

    labels = [label_text(label) for label in inside["classes"]]
    rows = labels[1:] if len(labels) == 2 and inside["several_labels"] is None else labels
    everything = [feature for row in features for feature in row]
    first = [feature.names[0] for feature in everything if feature.names]
    parts = list(dict.fromkeys(name.part for name, _ in first))
    strings = inside["shape"]["kind"] == Strings.kind
    words = strings or inside["shape"]["kind"] == Table.kind
    kmers = strings and any(name.text for name, _ in first)
    placed = any(name.text and name.position is not None for name, _ in first)
    seen = [k for k in range(len(labels) + 1) if any(times[k] for _, times in first)]
    for label, row in zip(rows, features, strict=True):
        if not row:
            continue
        title = f"largest weights ({label})" + ("; positions count from 1 in the string" if placed else "")
        headings = ["map"] * (len(parts) > 1) + ["position"] * placed + ["feature"] + ["letters"] * kmers + ["weight"]
        counts = [f"in {labels[k]}" if k < len(labels) else "no label" for k in seen]
        headings += ["adds"] * read + counts + ["others"] * read
        table = []
        for feature in row:
            name, times = feature.names[0] if feature.names else (None, [0] * (len(labels) + 1))
            others = len(feature.names) - 1 + feature.others
            cells = [str(parts.index(name.part) + 1) if name else ""] * (len(parts) > 1)
            cells += ["" if name is None else "any" if name.position is None else str(name.position + 1)] * placed
            cells += [_feature_text(feature, names, quoted=words), *([str(len(name.text)) if name else ""] * kmers)]
            cells += [number(feature.weight, 4), *([number(feature.contribution, 3)] * read)]
            cells += [*(f"{times[k]:,}" for k in seen), *([f"+{others:,}" if others > 0 else ""] * read)]
            table.append(cells)
        at = headings.index("feature")
        show_table(headings, table, words=(at,), keys=at + 1, title=title)
    if len(parts) > 1:
        for place, part in enumerate(parts, 1):
            sys.stdout.write(f"map {place}: {printable(part)}\n")
    if read and first:
        sys.stdout.write("adds: weight times value, for one occurrence; others: names that share the slot\n")
    if not read and len(first) < len(everything):
        sys.stdout.write("slots that are hashed are named with --data FILE\n")


def _feature_text(feature: Feature, names: list[str] | None, *, quoted: bool) -> str:
    """The most frequent name in a slot, or its number."""
    if not feature.names:
        return f"slot {feature.slot}"
    name = feature.names[0][0]
    if name.text:
        return repr(name.text) if quoted and (" " in name.text or not name.text.isprintable()) else name.text
    assert name.position is not None
    if names is not None and name.position < len(names):
        return names[name.position]
    return f"column {name.position + 1}"


def _feature_json(feature: Feature, classes: list[object]) -> Record:
    """A slot and what falls into it; positions count from 1."""
    keys = [str(label) for label in classes] + [""]
    names = [
        {
            "map": name.part,
            "position": None if name.position is None else name.position + 1,
            "text": name.text,
            "occurrences": dict(zip(keys, times, strict=True)),
        }
        for name, times in feature.names[:NAMES_TOLD]
    ]
    others = len(feature.names) - len(names) + feature.others
    known = {"slot": feature.slot, "weight": feature.weight, "value": feature.value}
    return known | {"names": names, "other_names": others}
