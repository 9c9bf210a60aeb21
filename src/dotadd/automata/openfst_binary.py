"""OpenFst's binary format: a header, symbol tables, and a `vector` or `const` automaton.

The weights of arcs of the types standard (tropical), log and log64 are costs; exp(-cost) is the weight in the real
semiring. Paths of the standard type are then added, not compared. `real64` is for weights that may be negative, which
OpenFst's own programs do not read.
"""

from __future__ import annotations

import struct

import numpy as np

from dotadd.automata.automaton import Automaton, offsets_of
from dotadd.automata.openfst_text import costs_of
from dotadd.automata.symbols import SymbolTable
from dotadd.errors import AutomatonError, DataError

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


def parse(data: bytes, path: str) -> Automaton:
    """The automaton of a whole file."""
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


def data_of(automaton: Automaton, arc_type: str = "log64") -> bytes:
    """The file of an automaton, of the type `vector`."""
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
