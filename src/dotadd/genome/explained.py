"""Explanations as files: arrays for TF-MoDISco, tracks of a genome, tables, JSON lines, pictures and pages; the end of
the name tells which.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

import numpy as np

from dotadd._util.atomic import replacing
from dotadd._util.compressed import writing
from dotadd.errors import DotaddError, as_written, printable, require_extra
from dotadd.explain.explanation import ExplainedRow, Explanation
from dotadd.explain.logo import logos
from dotadd.genome.scan import write_intervals

PLACE = re.compile(r"([^\s:]+):(\d+)-(\d+)(?:\(([+.-])\))?$")  # as bedtools and UCSC name stretches of a genome
FORMATS = (".npz", ".bw", ".bigwig", ".tsv", ".jsonl", ".svg", ".html")


def ending(path: str) -> str:
    """The format of a file of this name; raises if it is none of these, or if nothing could write it."""
    name = path.lower()
    for end in (".gz", ".bz2", ".xz"):
        name = name.removesuffix(end) if name.endswith((f".tsv{end}", f".jsonl{end}")) else name
    found = os.path.splitext(name)[1]
    if found not in FORMATS:
        raise DotaddError(f"{path}: explanations are written as {', '.join(FORMATS)}; name it so")
    if found in (".bw", ".bigwig"):
        require_extra("pybigtools", f"{path}: bigWig needs")
    return found


def present_path(path: str) -> str:
    """Where the letters themselves are written, beside the array of what they add."""
    return f"{path[: -len('.npz')]}.onehot.npz"


def write_explanation(found: Explanation, path: str, title: str) -> list[str]:
    """Write the file, whole or not at all; the names of those that were written."""
    kind = ending(path)
    if kind == ".npz":
        return _write_arrays(found, path)
    if kind in (".bw", ".bigwig"):
        _write_track(found, path)
    elif kind == ".html":
        found.to_html(path, title)
    elif kind == ".svg":
        _require_sequences(found, path)
        with replacing(path) as temporary:
            pictures = [(row.texts[""].text.decode("latin-1"), row.texts[""].adds, row.title) for row in found]
            temporary.write_text(logos(pictures), encoding="utf-8")
    else:
        lines = _letter_lines(found) if found.alphabet is not None else _feature_lines(found)
        if kind == ".jsonl":
            lines = (json.dumps(row) for row in found.to_dicts())
        with writing(path) as file:
            for line in lines:
                file.write(f"{line}\n".encode())
    return [path]


def _require_sequences(found: Explanation, path: str) -> None:
    if found.alphabet is None or not all("" in row.texts for row in found):
        raise DotaddError(f"{path}: it holds letters and positions of sequences, and the model reads none")


def _write_arrays(found: Explanation, path: str) -> list[str]:
    _require_sequences(found, path)
    beside = present_path(path)
    for name, array in zip((path, beside), found.arrays(), strict=True):
        with replacing(name, ending=".npz") as temporary:
            np.savez_compressed(temporary, array)
    return [path, beside]


def _letter_lines(found: Explanation) -> Iterator[str]:
    """A line for each letter; positions count from 1."""
    letters = found.alphabet.letters if found.alphabet is not None and found.method == "ism" else ""
    yield "\t".join(["row", "name", "position", "letter", "adds", *(f"change_{letter}" for letter in letters)])
    for row in found:
        text, adds = row.texts[""]
        name = printable(row.name)
        for place, (letter, value) in enumerate(zip(text.decode("latin-1"), adds.tolist(), strict=True)):
            more = [] if row.changes is None or not letters else [f"{v:.6g}" for v in row.changes[:, place].tolist()]
            yield "\t".join([str(row.row + 1), name, str(place + 1), printable(letter), f"{value:.6g}", *more])


def _feature_lines(found: Explanation) -> Iterator[str]:
    """A line for each of the features that add most; spans count bytes from 0, without the end."""
    yield "\t".join(["row", "class", "score", "intercept", "feature", "column", "value", "weight", "adds", "spans"])
    for row in found:
        about = [str(row.row + 1), printable(as_written(row.label)), f"{row.score:.6g}", f"{row.intercept:.6g}"]
        for feature in row.features:
            numbers = [f"{number:.6g}" for number in (feature.value, feature.weight, feature.contribution)]
            spans = ",".join(f"{first}-{stop}" for first, stop in feature.spans)
            yield "\t".join([*about, printable(feature.name), printable(feature.column), *numbers, spans])


def place_of(row: ExplainedRow) -> tuple[str, int, np.ndarray]:
    """Chromosome, first position from 0, and what letters add in the order of the forward strand, by the row's name."""
    match = PLACE.search(row.name)
    adds = row.texts[""].adds
    if match is None:
        raise DotaddError(f"{row.title}: a track needs names such as chr1:100-250 or chr1:100-250(-) in FASTA headers")
    chromosome, first, stop = match[1], int(match[2]), int(match[3])
    if stop - first + 1 == len(adds):  # counted from 1, the last one included
        first -= 1
    elif stop - first != len(adds):
        raise DotaddError(f"{row.name}: is a place of {stop - first} letters, and the sequence has {len(adds)}")
    return chromosome.rpartition("::")[2], first, adds[::-1] if match[4] == "-" else adds


def _write_track(found: Explanation, path: str) -> None:
    """A value for each letter; where rows overlap, the mean of theirs."""
    _require_sequences(found, path)
    rows: dict[str, list[tuple[int, np.ndarray]]] = {}
    for row in found:
        chromosome, first, adds = place_of(row)
        rows.setdefault(chromosome, []).append((first, adds))

    def intervals() -> Iterator[tuple[str, int, int, float]]:
        for chromosome in sorted(rows):
            places = np.concatenate([np.arange(first, first + len(adds)) for first, adds in rows[chromosome]])
            distinct, at = np.unique(places, return_inverse=True)
            total = np.bincount(at, np.concatenate([adds for _, adds in rows[chromosome]]))
            means = total / np.bincount(at)
            for place, value in zip(distinct.tolist(), means.tolist(), strict=True):
                yield chromosome, place, place + 1, value

    lengths = {name: max(first + len(adds) for first, adds in parts) for name, parts in rows.items()}
    write_intervals(path, lengths, intervals)
