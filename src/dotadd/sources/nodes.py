"""Lattices in a cell of a table: `[nodes], [edges]`, as the SNIPS lattices are published.

A node is `('word', log p, ...)`: the logarithm of the probability that this word follows where the path has come to.
What stands behind it (the logarithms of the node's posterior and of its share in the next node) follows from the first
number and is not used. An edge is a pair of nodes, which are counted from 0; the first is `<s>`, the last `</s>`. A
word that may also be the last has edges to other words and to `</s>`, whose number is 0 whatever comes before: an edge
to `</s>` has the probability that is left. With this rule, the posteriors that follow are the published ones to 1e-4.

Any other text in a cell is a sentence, and its lattice is the chain of its words: so a machine may learn from
transcripts and be asked about lattices.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict

from dotadd.automata.draft import Draft
from dotadd.automata.symbols import EPSILON_NAME
from dotadd.errors import DataError

ROUNDING = 1e-3  # by which the probabilities behind a node may be off
_NODE = re.compile(r"""\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*,\s*([^\s,()\[\]]+)\s*(?:,[^()\[\]'"]*)?\)""")
_EDGE = re.compile(r"\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)")
_NEXT, _CLOSE = re.compile(r"\s*,\s*"), re.compile(r"\s*\]\s*")


def cell_draft(cell: str, path: str | None, line: int) -> Draft:
    """The lattice of a cell."""
    if not cell.startswith("[("):
        return _chain(cell.split(), path, line)
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
