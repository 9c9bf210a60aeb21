"""The lattice that a cell of a table holds: `[nodes], [edges]` as the SNIPS lattices are published (see `lattices`),
several lines of OpenFst's or Kaldi's text or of a confusion network of SRILM's, or else a sentence, which is the chain
of its words. A name of a file is refused: a copy of the table would not know when that file changes."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path

from dotadd.automata.draft import Draft, Numbering, Options
from dotadd.automata.files import ENDINGS, draft_of, format_of, records
from dotadd.automata.symbols import EPSILON_NAME, HashedSymbols
from dotadd.data.batches import Strings
from dotadd.data.lattices import Lattices
from dotadd.errors import DataError
from dotadd.sources.lattice_rows import LatticeRows

SILENT = {"<s>", "</s>", "!SENT_START", "!SENT_END", "!NULL"}
ROUNDING = 1e-3  # by which the probabilities behind a node may be off
_NODE = re.compile(r"""\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*,\s*([^\s,()\[\]]+)\s*(?:,[^()\[\]'"]*)?\)""")
_EDGE = re.compile(r"\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)")
_ARC = re.compile(r"^\d+\s+\d+\s", re.MULTILINE)  # of a lattice, if with a mistake
_NEXT, _CLOSE = re.compile(r"\s*,\s*"), re.compile(r"\s*\]\s*")


def lattices_of(cells: Strings, words: HashedSymbols) -> tuple[Lattices, dict[int, str]]:
    """The lattices of a column, and complaints about cells that hold none; these are empty."""
    rows, numbering, complaints = LatticeRows(), Numbering(words), dict[int, str]()
    for row in range(len(cells)):
        cell = cells[row].decode(errors="replace")
        try:
            put(rows, cell_draft(cell, None, 1), numbering)
        except DataError as error:
            message = str(error).removeprefix(f"{error.line}: ")
            complaints[row] = f"line {error.line} of the cell: {message}" if (error.line or 1) > 1 else message
            put(rows, _chain([], None, 1), numbering)
    batch, found = rows.batch(words)
    return batch, found | complaints


def put(rows: LatticeRows, draft: Draft, numbering: Numbering) -> None:
    """Put one more lattice to the rows: the acceptor of its words."""
    words = draft.on_outputs().outputs
    if not SILENT.isdisjoint(words):
        draft.inputs = draft.outputs = [EPSILON_NAME if word in SILENT else word for word in words]
    rows.append(draft, numbering)


def cell_draft(cell: str, path: str | None, line: int) -> Draft:
    """The lattice of a cell."""
    if "\n" in cell and ((format := format_of(cell.encode())) is not None or _ARC.search(cell)):
        return _only_draft(cell, format or ("text" if _ARC.match(cell) else "kaldi"), path, line)
    if not cell.startswith("[("):
        words = cell.split()
        if len(words) == 1 and any(suffix in ENDINGS for suffix in Path(cell).suffixes):
            raise DataError(f"{cell!r} names a file, and a cell holds the lattice itself", path, line)
        return _chain(words, path, line)
    found, at = _items(_NODE, cell, 1, "('word', log p, ...)", path, line)
    comma = _NEXT.match(cell, at)
    if comma is None or cell[comma.end() : comma.end() + 1] != "[":
        raise DataError("expected a list of edges after the nodes: [('<s>', 0), ...], [(0, 1), ...]", path, line)
    edges, at = _items(_EDGE, cell, comma.end() + 1, "(node, node)", path, line)
    if at < len(cell):
        raise DataError(f"expected nothing after the edges, but there is {cell[at : at + 20]!r}", path, line)
    words = [_word(node) for node in found]
    logs = [_log(node[3], path, line) for node in found]
    return _lattice(words, logs, [(int(edge[1]), int(edge[2])) for edge in edges], path, line)


def _only_draft(cell: str, format: str, path: str | None, line: int) -> Draft:
    several = list(records(enumerate(cell.split("\n"), line), format))
    if len(several) != 1:
        raise DataError(f"a cell holds one lattice, and this one has {len(several)}", path, line)
    return draft_of(several[0], path, format, Options(), None)


def _lattice(words: list[str], logs: list[float], edges: list[tuple[int, int]], path: str | None, line: int) -> Draft:
    end = len(words) - 1
    if (words[0], words[end]) != ("<s>", "</s>"):
        raise DataError(f"the nodes begin with <s> and end with </s>, and not {words[0]} and {words[end]}", path, line)
    for edge in edges:
        if max(edge) > end:
            raise DataError(
                f"the edge {edge} leads to node {max(edge)}, which is missing: there are {end + 1}", path, line
            )
    left: dict[int, float] = defaultdict(lambda: 1.0)
    for source, target in edges:
        left[source] -= math.exp(logs[target]) if target != end else 0.0
    draft = Draft(path, line, costs=False, start=0, finals={end: 1.0})
    draft.outputs = draft.inputs
    for source, target in edges:
        probability = left[source] if target == end else math.exp(logs[target])
        if probability < -ROUNDING:
            message = f"the probabilities of what follows node {source} sum to {1.0 - probability:.4g}"
            raise DataError(message, path, line)
        draft.sources.append(source)
        draft.targets.append(target)
        draft.inputs.append(words[target])
        draft.weights.append(max(0.0, probability))
        draft.lines.append(line)
    return draft


def _chain(words: list[str], path: str | None, line: int) -> Draft:
    n = len(words)
    draft = Draft(path, line, costs=False, start=0, finals={n: 1.0})
    draft.sources, draft.targets = list(range(n)), list(range(1, n + 1))
    draft.inputs = draft.outputs = words
    draft.weights, draft.lines = [1.0] * n, [line] * n
    return draft


def _items(
    pattern: re.Pattern[str], cell: str, at: int, what: str, path: str | None, line: int
) -> tuple[list[re.Match[str]], int]:
    """The items of a list that begins at a place behind its bracket, and the place behind the list."""
    found: list[re.Match[str]] = []
    while True:
        item = pattern.match(cell, at)
        if item is None:
            raise DataError(f"expected {what}, but there is {cell[at : at + 20]!r}", path, line)
        found.append(item)
        closed = _CLOSE.match(cell, item.end())
        if closed is not None:
            return found, closed.end()
        comma = _NEXT.match(cell, item.end())
        if comma is None:
            raise DataError(f"expected a comma or a bracket, but there is {cell[item.end() :][:20]!r}", path, line)
        at = comma.end()


def _word(node: re.Match[str]) -> str:
    word = re.sub(r"\\(.)", r"\1", node[1] if node[1] is not None else node[2])
    return "_".join(word.split()) or EPSILON_NAME


def _log(text: str, path: str | None, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"{text!r} is not a number", path, line) from None
    if not value <= ROUNDING:
        raise DataError(f"{text} is not the logarithm of a probability", path, line)
    return value
