"""The formats of OpenFst and Kaldi: text, archives of text, and OpenFst's binary files.

Text has a line for each arc, `source target input output weight`, and for each end, `state weight`. Acceptors have one
label. A weight that is missing is One. The first line's state is the start. Weights are costs, or in Kaldi's lattices
two costs, graph and acoustic, with the alignment after a further comma; see `draft`.

Kaldi's text archives have many automata in one file, each after a line with its name, and before a blank line. Lattices
have arcs `source target transition word graph,acoustic`, compact lattices `source target word graph,acoustic,align`;
automata of one cost an arc are read as well, so that this is also OpenFst's text of many automata. The line with the
name may be `label<TAB>name`, where automata are labelled examples.

A binary file is a header, symbol tables, and a `vector` or `const` automaton. The weights of arcs of the types standard
(tropical), log and log64 are costs; exp(-cost) is the weight in the real semiring. Paths of the standard type are then
added, not compared. `real64` is for weights that may be negative, which OpenFst's own programs do not read.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator

import numpy as np

from dotadd.automata.automaton import Automaton, offsets_of
from dotadd.automata.draft import Draft, Options
from dotadd.automata.symbols import SymbolTable
from dotadd.errors import AutomatonError, DataError

Line = tuple[int, str]
ENDS, ARCS = (1, 2), (3, 4, 5)  # how many columns lines have


def draft_of(
    lines: Iterable[Line], path: str | None, options: Options, symbols: SymbolTable | None = None, first: int = 1
) -> Draft:
    """The automaton of numbered lines. Complaints without a line of their own are about line `first`."""
    draft = Draft(path, first, options.semiring == "log")
    arcs: list[tuple[int, list[str]]] = []
    for number, line in lines:
        words = line.split()
        if not words:
            continue
        if len(words) not in (*ENDS, *ARCS):
            raise DataError("an arc has from 3 to 5 columns and an end 1 or 2", path, number)
        state = _state(words[0], path, number)
        if draft.start is None:
            draft.start = state
        if len(words) in ARCS:
            arcs.append((number, words))
        elif state in draft.finals:
            raise DataError(f"state {state} is final already", path, number)
        else:
            draft.finals[state] = weight_of(words[1], options, path, number) if len(words) == 2 else options.one
    acceptor = _is_acceptor(arcs, options, symbols, path)
    if acceptor:
        draft.outputs = draft.inputs
    labels = 1 if acceptor else 2
    for number, words in arcs:
        draft.sources.append(_state(words[0], path, number))
        draft.targets.append(_state(words[1], path, number))
        draft.inputs.append(words[2])
        if not acceptor:
            draft.outputs.append(words[3])
        written = words[2 + labels :]
        draft.weights.append(weight_of(written[0], options, path, number) if written else options.one)
        draft.lines.append(number)
    return draft


def weight_of(word: str, options: Options, path: str | None, line: int) -> float:
    """A cost, a pair of costs, or a weight of the real semiring."""
    try:
        value = _parsed(word, options)
    except ValueError:
        raise DataError(f"the weight {word!r} is not a number", path, line) from None
    if math.isnan(value) or value == -math.inf or (value == math.inf and options.semiring == "real"):
        raise DataError(f"the weight {word!r} is not a finite number", path, line)
    return value


def _parsed(word: str, options: Options) -> float:
    costs = word.split(",", 2)
    if len(costs) == 1:
        return float(word)
    if options.semiring == "real":
        raise ValueError
    return float(costs[0]) + options.acoustic_scale * float(costs[1])


def _state(word: str, path: str | None, line: int) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 19):
        raise DataError(f"{word!r} is not the number of a state", path, line)
    return int(word)


def _is_acceptor(
    arcs: list[tuple[int, list[str]]], options: Options, symbols: SymbolTable | None, path: str | None
) -> bool:
    """Whether arcs have one label. All of the same automaton have as many."""
    widths = {len(words) for _, words in arcs}
    acceptor = options.acceptor
    if acceptor is None:
        acceptor = 5 not in widths and (3 in widths or _ends_in_weights([words for _, words in arcs], options, symbols))
    wrong = 5 if acceptor else 3
    if wrong in widths or {3, 5} <= widths:
        line = next(number for number, words in arcs if len(words) == (wrong if wrong in widths else 3))
        kind = "an acceptor, whose arcs have" if acceptor else "a transducer, whose arcs have"
        raise DataError(f"has {wrong} columns, but this is {kind} {'3 or 4' if acceptor else '4 or 5'}", path, line)
    return acceptor


def _ends_in_weights(arcs: list[list[str]], options: Options, symbols: SymbolTable | None) -> bool:
    """Whether the last of four columns is a weight: some are weights for sure, or most are numbers behind names.

    One that is not a number will then be complained about. If both last columns are whole numbers, they are two labels.
    """
    thirds, fourths = ([words[place] for words in arcs] for place in (2, 3))
    if symbols is not None and all(word in symbols for word in fourths):
        return False
    numbers = [word for word in fourths if _is_weight(word, options)]
    if any(not word.isdecimal() for word in numbers):
        return True
    return 2 * len(numbers) > len(fourths) and not all(word.isdecimal() for word in thirds)


def _is_weight(word: str, options: Options) -> bool:
    try:
        _parsed(word, options)
    except ValueError:
        return False
    return True


def lines_of(automaton: Automaton, semiring: str = "log", one: str = "{}") -> Iterator[str]:
    """The lines of an automaton. Each state has one, so that it is there when the file is read; the start is first.

    `one` is how a weight is written.
    """
    arc_weights = written_weights(automaton.weights, semiring)
    final_weights = written_weights(automaton.finals, semiring)
    reads, writes = labels_of(automaton, automaton.ilabels), labels_of(automaton, automaton.olabels)
    acceptor = automaton.is_acceptor
    others = (q for q in range(automaton.n_states) if q != automaton.start)
    for state in (automaton.start, *others):
        arcs = range(int(automaton.offsets[state]), int(automaton.offsets[state + 1]))
        for arc in arcs:
            labels = reads[arc] if acceptor else f"{reads[arc]}\t{writes[arc]}"
            yield f"{state}\t{automaton.targets[arc]}\t{labels}\t{one.format(arc_weights[arc])}\n"
        if automaton.finals[state] or not arcs:
            yield f"{state}\t{one.format(final_weights[state])}\n"


def written_weights(weights: np.ndarray, semiring: str) -> list[str]:
    """Weights as they stand in a file: costs, or as they are."""
    if semiring == "real":
        return [repr(value) for value in weights.tolist()]
    return ["Infinity" if cost == math.inf else repr(cost) for cost in costs_of(weights).tolist()]


def costs_of(weights: np.ndarray) -> np.ndarray:
    """-log of the weights."""
    if len(bad := np.flatnonzero(weights < 0.0)):
        raise AutomatonError(
            f"the weight {weights[bad[0]]:g} is negative and has no cost; write the file with semiring='real'"
        )
    with np.errstate(divide="ignore"):
        return -np.log(weights) + 0.0  # no -0.0


def labels_of(automaton: Automaton, labels: np.ndarray) -> list[str]:
    """Labels by name, or by number where there are no names."""
    if automaton.symbols is None:
        return [str(label) for label in labels.tolist()]
    name_of = {label: automaton.symbols.name(label) for label in set(labels.tolist())}
    return [name_of[label] for label in labels.tolist()]


def blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines between blank lines."""
    block: list[Line] = []
    for number, line in lines:
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def block_draft(block: list[Line], path: str | None, options: Options, symbols: SymbolTable | None = None) -> Draft:
    """The automaton of one block, with its name and label."""
    first, head = block[0]
    words = head.split()
    if len(words) > 2 and words[0].isdecimal() and words[1].isdecimal():
        raise DataError("expected a line with the name of an automaton before its arcs", path, first)
    draft = draft_of(block[1:], path, options, symbols, first)
    if "\t" in head.strip():
        label, _, head = head.strip().partition("\t")
        draft.label = label.strip()
    draft.name = head.strip()
    return draft


def block_text(name: str, automaton: Automaton, semiring: str = "log") -> Iterator[str]:
    """The lines of one automaton: a compact lattice if it is an acceptor, else a lattice."""
    compact = "{},0," if automaton.is_acceptor else "{},0"
    yield f"{name} \n"
    yield from lines_of(automaton, semiring, "{}" if semiring == "real" else compact)
    yield "\n"


MAGIC, SYMBOLS_MAGIC = 2125659606, 2125658996
WEIGHTS: dict[str, type] = {
    "standard": np.float32, "log": np.float32, "log64": np.float64, "real": np.float32, "real64": np.float64,
}  # fmt: skip
ISYMBOLS, OSYMBOLS, ALIGNED = 1, 2, 4  # flags
ALIGNMENT = 16
EXPANDED_MUTABLE = 3  # the properties that every vector automaton has; OpenFst finds out the others


def is_binary(beginning: bytes) -> bool:
    return beginning[:4] == struct.pack("<i", MAGIC)


class _Reader:
    """Bytes of a file, one thing after the other."""

    def __init__(self, data: bytes, path: str) -> None:
        self.data, self.path, self.at = data, path, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise DataError("is damaged: it ends too early", self.path)
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, kind: str) -> int:
        return struct.unpack(f"<{kind}", self.take(struct.calcsize(f"<{kind}")))[0]

    def text(self) -> str:
        return self.take(self.number("i")).decode("utf-8", "replace")

    def array(self, dtype: np.dtype, count: int) -> np.ndarray:
        if count < 0:
            raise DataError("is damaged: a count is negative", self.path)
        return np.frombuffer(self.take(dtype.itemsize * count), dtype)

    def align(self) -> None:
        self.take(-self.at % ALIGNMENT)

    def symbols(self) -> SymbolTable:
        if self.number("i") != SYMBOLS_MAGIC:
            raise DataError("is damaged: expected a symbol table", self.path)
        self.text()
        self.number("q")
        pairs = ((self.text(), self.number("q")) for _ in range(self.number("q")))
        try:
            return SymbolTable.of_pairs(pairs)
        except AutomatonError as error:
            raise DataError(str(error), self.path) from None


def parse_binary(data: bytes, path: str) -> Automaton:
    """The automaton of a whole binary file."""
    reader = _Reader(data, path)
    if not is_binary(data):
        raise DataError("is not a binary file of OpenFst", path)
    reader.take(4)
    kind, arc_type = reader.text(), reader.text()
    version, flags = reader.number("i"), reader.number("i")
    reader.number("Q")
    start, n_states, n_arcs = (reader.number("q") for _ in range(3))
    if arc_type not in WEIGHTS:
        raise DataError(f"has arcs of type {arc_type!r}; those that can be read are {', '.join(WEIGHTS)}", path)
    if kind not in ("vector", "const"):
        raise DataError(f"is an automaton of type {kind!r}; convert it with fstconvert --fst_type=vector", path)
    tables = [reader.symbols() if flags & flag else None for flag in (ISYMBOLS, OSYMBOLS)]
    weight = np.dtype(WEIGHTS[arc_type]).newbyteorder("<")
    if kind == "vector":
        counts, finals, arcs = _vector(reader, weight, n_states)
    else:
        counts, finals, arcs = _const(reader, weight, n_states, n_arcs, bool(flags & ALIGNED) or version == 1)
    if not len(finals):
        return Automaton.from_arcs([], {}, symbols=tables[0])
    ilabels, olabels, symbols = _named(arcs["i"], arcs["o"], tables)
    weights, finals = (values.astype(np.float64) for values in (arcs["w"], finals))
    if not arc_type.startswith("real"):
        with np.errstate(over="ignore"):
            weights, finals = np.exp(-weights), np.exp(-finals)
    sources = np.repeat(np.arange(len(counts)), counts)
    try:
        return Automaton.from_arrays(sources, arcs["t"], ilabels, olabels, weights, finals, max(start, 0), symbols)
    except AutomatonError as error:
        raise DataError(str(error), path) from None


def _arc(weight: np.dtype, padded: bool) -> np.dtype:
    return np.dtype([("i", "<i4"), ("o", "<i4"), ("w", weight), ("t", "<i4")], align=padded)


def _vector(reader: _Reader, weight: np.dtype, n_states: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many arcs leave each state, final weights, and arcs: each state, then its arcs. -1 states: to the end."""
    arc = _arc(weight, padded=False)
    counts: list[int] = []
    finals: list[float] = []
    parts = [np.empty(0, arc)]
    while len(finals) != n_states and not (n_states < 0 and reader.at == len(reader.data)):
        finals.append(reader.array(weight, 1)[0])
        counts.append(reader.number("q"))
        parts.append(reader.array(arc, counts[-1]))
    return np.array(counts, np.int64), np.array(finals, weight), np.concatenate(parts)


def _const(
    reader: _Reader, weight: np.dtype, n_states: int, n_arcs: int, aligned: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of two arrays of structures, as they lie in memory."""
    state = np.dtype([("w", weight), *((name, "<u4") for name in ("first", "arcs", "ieps", "oeps"))], align=True)
    if aligned:
        reader.align()
    states = reader.array(state, n_states)
    if aligned:
        reader.align()
    arcs = reader.array(_arc(weight, padded=True), n_arcs)
    counts = states["arcs"].astype(np.int64)
    if not np.array_equal(states["first"], offsets_of(np.repeat(np.arange(n_states), counts), n_states)[:-1]):
        raise DataError("is damaged: the arcs of its states do not follow one another", reader.path)
    if counts.sum() != n_arcs:
        raise DataError(f"is damaged: its states have {counts.sum()} arcs, and {n_arcs} are there", reader.path)
    return counts, states["w"], arcs


def _named(
    ilabels: np.ndarray, olabels: np.ndarray, tables: list[SymbolTable | None]
) -> tuple[np.ndarray, np.ndarray, SymbolTable | None]:
    """Labels of one table. Where inputs and outputs have two different ones, outputs are numbered anew."""
    inputs, outputs = tables
    if inputs is None or outputs is None or inputs == outputs:
        return ilabels, olabels, outputs if inputs is None else inputs
    joint = SymbolTable.of_pairs(inputs.pairs())
    number_of = {number: joint.add(name) if number else 0 for name, number in outputs.pairs()}
    return ilabels, np.array([number_of.get(label, label) for label in olabels.tolist()], np.int64), joint


def binary_of(automaton: Automaton, arc_type: str = "log64") -> bytes:
    """The binary file of an automaton, of the type `vector`."""
    if arc_type not in WEIGHTS:
        raise AutomatonError(f"arc_type has to be one of {', '.join(WEIGHTS)}, and not {arc_type!r}")
    real = arc_type.startswith("real")
    weights, finals = (x if real else costs_of(x) for x in (automaton.weights, automaton.finals))
    weight = np.dtype(WEIGHTS[arc_type]).newbyteorder("<")
    arcs = np.empty(automaton.n_arcs, _arc(weight, padded=False))
    columns = (automaton.ilabels, automaton.olabels, weights, automaton.targets)
    for name, column in zip("iowt", columns, strict=True):
        arcs[name] = column
    parts = [struct.pack("<i", MAGIC), _text("vector"), _text(arc_type)]
    flags = 0 if automaton.symbols is None else ISYMBOLS | OSYMBOLS
    counts = (automaton.start, automaton.n_states, automaton.n_arcs)
    parts.append(struct.pack("<iiQqqq", 2, flags, EXPANDED_MUTABLE, *counts))
    if automaton.symbols is not None:
        parts += [_symbols(automaton.symbols)] * 2
    ends = finals.astype(weight)
    for state in range(automaton.n_states):
        first, stop = (int(at) for at in automaton.offsets[state : state + 2])
        parts += [ends[state].tobytes(), struct.pack("<q", stop - first), arcs[first:stop].tobytes()]
    return b"".join(parts)


def _text(words: str) -> bytes:
    data = words.encode()
    return struct.pack("<i", len(data)) + data


def _symbols(table: SymbolTable) -> bytes:
    pairs = list(table.pairs())
    parts = [struct.pack("<i", SYMBOLS_MAGIC), _text("symbols"), struct.pack("<qq", table.largest + 1, len(pairs))]
    parts += [_text(name) + struct.pack("<q", number) for name, number in pairs]
    return b"".join(parts)
