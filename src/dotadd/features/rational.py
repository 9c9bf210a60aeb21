"""Rational: the features of a rational kernel (Allauzen, Cortes and Mohri), for strings and for lattices.

phi_z(X) = (X o T)(z) = sum over strings x of X(x) T(x, z), for each string z that the transducer T writes
k(X, Y)  = sum over z of phi_z(X) phi_z(Y) = D(X o T o T^-1 o Y)

The paper's Phi'_i is a row of a Block, its W' is w, and dual coordinate descent with this map is its Algorithm 2.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping

import numpy as np

from dotadd._jit import kernel, plain
from dotadd._util import memory
from dotadd._util.expression import call_repr, quoted
from dotadd._util.threads import for_each
from dotadd.automata.automaton import Automaton
from dotadd.automata.builders import Builder, GappyNGram, NGram, ScaledTransducer, TransducerSum
from dotadd.core import block as blocks
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Strings
from dotadd.data.lattices import Lattices
from dotadd.errors import FeatureError
from dotadd.features.base import BadRow, FeatureMap, Origins
from dotadd.features.filling import ExpandedRows, Keeping, PlacedRows
from dotadd.features.forms import HashedIds, slot_of
from dotadd.features.leaves import checked_bits, checked_factor, checked_flag, named_by_row
from dotadd.features.outputs import chains, counted
from dotadd.features.string_counts import WRITTEN_OUT, Outputs, dense_order, extended, gappy_counts, letters_of
from dotadd.features.transducer import Transducer

BITS = 22
KEPT = 0.25  # of free memory, for features that are computed once for a batch; where there are more, they are made anew
ROWS = 32  # that are expanded together
NO_BITS = 0


class Rational(FeatureMap):
    """How much of each string z an example X, a string or a lattice, holds by the measure of a transducer T.

    transducer: a builder, `ngram(n)`, `gappy_ngram(n, decay, gaps=None)`, `mismatch(k, m)` or sums and multiples of
        these; or a transducer of one's own, an Automaton or the name of a file with one. It may not write in circles
        without reading. The letters of strings are its symbols of one byte, or, where it names none, the labels 1 to
        255; the words of lattices are its symbols of the same name, or, where it names none, the same numbers.
    bits: features are hashed into 2**bits slots; None for the ids of all strings, to be used with `.indexed()`. Ids of
        up to seven letters do not collide, others are hashes of 62 bits.
    posteriors: whether a lattice's weights are scaled so that all of its paths have the weight 1 together; phi is then
        what T would find on average.
    digest: which transducer it is, where the expression does not say it. `repr` writes it, and whatever the file or the
        model brings is then held against it.

    With a mismatch, what can be written are the symbols that occur in training. Occurrences with gaps are left out
    where they count less than 2**-24. Without a limit on gaps a text has most n-grams of its letters, some 20,000 for
    n = 3 and 300,000 for n = 4 in texts of 800 letters, so that `gappy_ngram(4, 0.5, gaps=4)` may be preferred.
    """

    takes = (Strings, Lattices)

    def __init__(
        self,
        transducer: Builder | Automaton | str | os.PathLike[str] | None,
        *,
        bits: int | None = BITS,
        posteriors: bool = True,
        digest: str | None = None,
    ) -> None:
        if not isinstance(transducer, Builder | Automaton | str | os.PathLike | None):
            raise FeatureError(f"{transducer!r} is no transducer: write for example Rational(ngram(4))")
        self.transducer = os.fspath(transducer) if isinstance(transducer, os.PathLike) else transducer
        self.posteriors = checked_flag("posteriors", posteriors)
        self.bits = None if bits is None else checked_bits(bits)
        if digest is not None and (isinstance(transducer, Builder) or not isinstance(digest, str)):
            raise FeatureError(f"a digest is the text that tells transducers of one's own apart, and not {digest!r}")
        self.digest = digest
        if isinstance(transducer, str) and "\0" in transducer:
            raise FeatureError(f"{quoted(transducer)} is no name of a file")
        if isinstance(transducer, Builder):
            _check_factors(transducer)
        self._counters = _counters(transducer) if isinstance(transducer, Builder) else None
        self._symbols: np.ndarray | None = None  # what a mismatch writes
        self._ready: Transducer | None = None
        self._kept: ExpandedRows | None = None  # of the one batch that this is prepared for
        if isinstance(transducer, Automaton):
            self._make_ready(Transducer.of(transducer))

    def __repr__(self) -> str:
        options: dict[str, object] = {} if self.bits == BITS else {"bits": self.bits}
        options |= {} if self.posteriors else {"posteriors": False}
        options |= {} if self.digest is None else {"digest": self.digest}
        return call_repr("Rational", None if isinstance(self.transducer, Automaton) else self.transducer, **options)

    def __eq__(self, other: object) -> bool:
        """Whether both are described alike, transducers of one's own by their content; what was learned belongs to the
        model."""
        return isinstance(other, Rational) and repr(self) == repr(other)

    __hash__ = FeatureMap.__hash__

    @property
    def dim(self) -> int:
        return 2**63 if self.bits is None else 2**self.bits

    @property
    def learns(self) -> bool:
        """A mismatch learns the symbols that it writes; a file has to be read, whatever the data."""
        return self._counters is None and isinstance(self.transducer, Builder)

    def learn(self, batch: Batch) -> Rational:
        if self._counters is not None:
            return self
        if not isinstance(self.transducer, Builder):
            return self if self._ready is not None else self._with(self._prepared())
        labels = _labels(batch)
        known = np.empty(0, np.int64) if self._symbols is None else self._symbols
        symbols = np.union1d(known, np.unique(labels)).astype(np.int64)
        symbols = symbols[symbols > 0]
        return self if self._symbols is not None and len(symbols) == len(known) else self._with_symbols(symbols)

    def with_params(self, params: Mapping[str, object]) -> FeatureMap:
        # another transducer has another digest
        return super().with_params(({"digest": None} if "transducer" in params else {}) | dict(params))

    def _with(self, ready: Transducer) -> Rational:
        twin = copy.copy(self)
        twin._make_ready(ready)
        return twin

    def _make_ready(self, ready: Transducer) -> None:
        """Use this transducer of the user's, if it is the one that the expression means."""
        if self.digest not in (None, ready.digest):
            raise FeatureError(
                f"{self!r} is for another transducer, the digest of this one is {ready.digest!r}: bring back the "
                "one that the model or checkpoint was made with, or train anew"
            )
        self._ready, self.digest, self._kept = ready, ready.digest, None

    def _with_symbols(self, symbols: np.ndarray) -> Rational:
        """Over these symbols, and one more for all others, which is read but not written."""
        assert isinstance(self.transducer, Builder)
        twin = copy.copy(self)
        twin._symbols, twin._ready, twin._kept = symbols, Transducer.over(symbols, self.transducer), None
        return twin

    def _prepared(self) -> Transducer:
        """T where it is not counted, from its file if need be."""
        if self._ready is not None:
            return self._ready
        if isinstance(self.transducer, Builder):
            raise FeatureError(f"{self!r} has not seen the training data yet: call fit(X), or learn(batch)")
        if self.transducer is None:
            raise FeatureError(f"{self!r} has no transducer: give one, or load the model that it belongs to")
        from dotadd.automata.files import read

        assert isinstance(self.transducer, str)
        return Transducer.of(read(self.transducer))

    def state(self) -> dict[str, np.ndarray]:
        if self._counters is not None:
            return {}
        return {"symbols": self._symbols} if self._symbols is not None else self._prepared().state()

    def with_state(self, state: Mapping[str, np.ndarray]) -> Rational:
        if self._counters is not None:
            return self
        if isinstance(self.transducer, Builder):
            return self._with_symbols(np.array(state["symbols"], np.int64))
        return self._with(Transducer.of_state(state))

    def check(self, batch: Batch) -> BadRow | None:
        if self._counters is not None or isinstance(self.transducer, Builder) or not isinstance(batch, Strings):
            return None
        return self._prepared().foreign(batch)

    @property
    def checks_rows(self) -> bool:
        return self._counters is None and not isinstance(self.transducer, Builder)

    def bound(self, batch: Batch) -> int | np.ndarray:
        if self._rolls(batch):
            assert isinstance(batch, Strings)
            assert self._counters is not None
            lengths = batch.lengths().astype(np.int64) if batch.width is None else batch.width
            counts = sum(np.maximum(lengths - int(n) + 1, 0) for n in self._counters[:, 0])
            return counts if isinstance(counts, np.ndarray) else int(counts)
        return (self._kept_of(batch) or self._expanded(batch, 0.0)).lengths

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        if self._rolls(batch):
            assert isinstance(batch, Strings)
            starts, ends = batch.bounds(rows)
            _roll(
                plain(batch.letters), starts, ends, self._counters, self.bits or NO_BITS, block.base, block.scale,
                block.end, block.indices, block.values,
            )  # fmt: skip
            return
        kept = self._kept_of(batch)
        at, placed = rows, None if kept is None else kept.rows
        if placed is None:
            at, placed = np.arange(len(rows)), self._placed(batch, rows)
        _put(plain(at), *placed, block.base, block.scale, block.end, block.indices, block.values)

    def view(self, batch: Batch) -> Block | None:
        kept = self._kept_of(batch)
        return None if kept is None or kept.rows is None else blocks.view(*kept.rows, distinct=False)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        if self._rolls(batch) or self._kept_of(batch) is not None:
            return super().squared_norms(batch, rows)
        some = batch.take(rows)  # the bounds of all rows would cost more than the features of these
        return self.prepared(some).squared_norms(some, np.arange(len(rows)))

    def prepared(self, batch: Batch, threads: int = 1) -> Rational:
        """With the features of the batch, as long as there is room, or else how many there are of each row."""
        if self._rolls(batch):
            return self
        twin = copy.copy(self)
        twin._kept = self._expanded(batch, KEPT * memory.available(), threads)
        return twin

    def _kept_of(self, batch: Batch) -> ExpandedRows | None:
        return self._kept if self._kept is not None and self._kept.batch is batch else None

    def _rolls(self, batch: Batch) -> bool:
        """Whether features are n-grams of plain strings, which are written faster than they could be looked up."""
        return isinstance(batch, Strings) and self._counters is not None and not self._counters[:, 1].any()

    def _outputs(self, batch: Batch, rows: np.ndarray) -> Outputs:
        if self._counters is None:
            return self._prepared().outputs(batch, rows, posteriors=self.posteriors)
        some = batch.take(rows)
        if isinstance(some, Strings):
            n, decay, factor, gaps = self._counters[0]
            if len(self._counters) == 1 and gaps < 0 and dense_order(some, int(n)):
                return gappy_counts(some, int(n), decay, factor)
            return counted(chains(some), self._counters, posteriors=False)
        assert isinstance(some, Lattices)
        return counted(some, self._counters, posteriors=self.posteriors)

    def _expanded(self, batch: Batch, room: float, threads: int = 1) -> ExpandedRows:
        """The features of a batch, if they take no more than so many bytes, and how many each row has."""
        keeping = Keeping(-(-len(batch) // ROWS), room)
        lengths = np.zeros(len(batch), np.int64)

        def expand(number: int) -> None:
            rows = np.arange(number * ROWS, min((number + 1) * ROWS, len(batch)), dtype=np.int64)
            placed = self._placed(batch, rows)
            lengths[rows] = np.diff(placed.offsets)
            keeping.put(number, placed)

        for_each(range(-(-len(batch) // ROWS)), expand, threads)
        return ExpandedRows(batch, lengths, keeping.rows())

    def _placed(self, batch: Batch, rows: np.ndarray) -> PlacedRows:
        """These rows, ids hashed to slots; values have the precision that blocks have by default."""
        offsets, ids, values = self._outputs(batch, rows)
        indices = ids if self.bits is None else HashedIds(self.bits).find(ids).astype(np.uint32)
        return PlacedRows(offsets, indices, values.astype(np.float32))

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        return named_by_row(self, rows, nth, lambda row: self._texts(batch, row))

    def _texts(self, batch: Batch, row: int) -> list[bytes]:
        """What the non-zeros of a row stand for, in the order in which `fill` writes them."""
        if self._rolls(batch):
            assert isinstance(batch, Strings)
            assert self._counters is not None
            text = batch[row]
            runs = (text[i : i + n] for n in self._counters[:, 0].astype(int) for i in range(len(text) - n + 1))
            return [run for run in runs if 0 not in run]
        transducer = self._ready
        if transducer is None:
            assert isinstance(self.transducer, Builder)
            one = batch.take(np.array([row]))
            labels = np.unique(_labels(one))
            transducer = Transducer.over(labels[labels > 0], self.transducer)
        spelled = transducer.spelled(batch, row)
        return [spelled.get(number, b"") for number in self._outputs(batch, np.array([row])).ids.tolist()]

    def invert(self, slots: np.ndarray) -> Origins:
        names = Origins.unnamed(repr(self), len(slots))
        if self.bits is None and self._symbols is None:
            names.text[:] = [letters_of(number) or b"" for number in slots.tolist()]
        return names


def _labels(batch: Batch) -> np.ndarray:
    """The labels of these rows; a slice of a batch still has those of all."""
    if not len(batch):
        return np.empty(0, np.int64)
    if isinstance(batch, Strings):
        batch = batch.together()
        starts, ends = batch.bounds(np.array([0, len(batch) - 1]))
        return batch.letters[starts[0] : ends[1]]
    assert isinstance(batch, Lattices)
    (states, arcs), (labels, *_), _ = batch.parts()
    first, last = arcs[states[[0, -1]]]
    return labels[first:last]


def _check_factors(builder: Builder) -> None:
    """Refuse factors with which features, or their squares, would overflow."""
    match builder:
        case TransducerSum(terms=terms):
            for term in terms:
                _check_factors(term)
        case ScaledTransducer(factor=factor, of=inside):
            checked_factor("the factor of a transducer", factor)
            _check_factors(inside)


def _counters(builder: Builder, factor: float = 1.0) -> np.ndarray | None:
    """A sum of n-gram counters as rows (n, decay, factor, gaps); None if there is anything else in it."""
    match builder:
        case TransducerSum(terms=terms):
            parts = [_counters(term, factor) for term in terms]
            counters = [part for part in parts if part is not None]
            return np.concatenate(counters) if len(counters) == len(parts) else None
        case ScaledTransducer(factor=number, of=inside):
            return _counters(inside, factor * number)
        case GappyNGram(n=n, decay=decay, gaps=gaps):
            return np.array([[n, decay, factor, -1 if gaps is None else gaps]], np.float64)
        case NGram(n=n):
            return np.array([[n, 0.0, factor, -1]], np.float64)
    return None


@kernel
def _put(at, offsets, indices, values, base, scale, cursor, out_indices, out_values):
    for j in range(len(at)):
        p = np.uint64(cursor[j])
        for k in range(np.uint64(offsets[at[j]]), np.uint64(offsets[at[j] + 1])):
            out_indices[p] = np.uint64(base) + np.uint64(indices[k])
            out_values[p] = scale * values[k]
            p += np.uint64(1)
        cursor[j] = p


@kernel
def _roll(letters, starts, ends, counters, bits, base, scale, cursor, out_indices, out_values):
    """The n-grams of each string, counter by counter. Byte 0 is no letter, and n-grams do not reach across it."""
    for j in range(len(starts)):
        p = np.uint64(cursor[j])
        for t in range(len(counters)):
            n, value = np.int64(counters[t, 0]), scale * counters[t, 2]
            written = WRITTEN_OUT if n > WRITTEN_OUT else n
            mask = np.uint64((np.uint64(1) << np.uint64(8 * written)) - np.uint64(1))
            rest = np.uint64(n - written)
            number, seen = np.uint64(0), np.int64(0)  # the letters `rest` before the last one, and how many there are
            start = np.uint64(starts[j])
            for i in range(start, np.uint64(ends[j])):
                seen = seen + np.int64(1) if letters[i] != 0 else np.int64(0)
                if i < start + rest:
                    continue
                number = (number << np.uint64(8) | np.uint64(letters[i - rest])) & mask
                if seen < n:
                    continue
                h = number
                for k in range(i - rest + np.uint64(1), i + np.uint64(1)):
                    h = extended(h, np.uint64(letters[k]))
                out_indices[p] = np.uint64(base) + (h if bits == 0 else slot_of(h, bits))
                out_values[p] = value
                p += np.uint64(1)
        cursor[j] = p
