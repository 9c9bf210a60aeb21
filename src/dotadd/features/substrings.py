"""AllSubstrings: counts of substrings of all lengths (Vishwanathan and Smola 2002; Teo and Vishwanathan 2006).

k(z, z') = sum over substrings s of weight(|s|) #s(z) #s(z')

There is no number for each s, but training strings have at most two times as many sets of substrings that occur at the
same places as they have letters. Each set is a slot: an edge of the suffix tree of all training strings
(suffix_tree.py). phi(z) is what z has in the space that these span, so <phi(z), phi(z')> is k(z, z') as soon as one of
the two is a training string, and every output of a trained machine is that of the kernel. Of two other strings it is k
without the substrings that no training string has, those of one set taken on average; and that is the length by which
`.normalized()` divides.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, Self, cast

import numpy as np

from dotadd._jit import kernel, plain
from dotadd._util.expression import quoted
from dotadd._util.memory import has_room
from dotadd._util.threads import for_each
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Strings
from dotadd.errors import FeatureError
from dotadd.features import substring_sums as sums_of
from dotadd.features.alphabet import FOREIGN, Alphabet, Span, as_span
from dotadd.features.base import Arrays, BadRow, FeatureMap, Origins
from dotadd.features.kmers import LetterMap, foreign_letter
from dotadd.features.learning import Learner, learned
from dotadd.features.leaves import checked_int
from dotadd.features.occurrences import Occurrences
from dotadd.features.spectrum import LARGEST_BETA
from dotadd.features.suffix_tree import AT, LEAF, MOST_LETTERS, PARENT, SuffixTree

LONGEST = 2**31 - 1
CALL_LETTERS = 1 << 20  # that one kernel call looks up, so that Ctrl-C is answered in time
PASSED = 8  # nodes that a suffix passes, about: for fewer of them than there are, no table is made
ROOM = 0.25  # of free memory, for the nodes of the letters of a batch
TABLES = 1 << 30  # bytes of tables that are made at a time


class Loci(NamedTuple):
    """Of each letter of some rows the last node that the suffix from there on reaches, and what it lacks of it."""

    first: np.ndarray
    node: np.ndarray
    lost: np.ndarray


class AllSubstrings(LetterMap):
    """Counts of all substrings, those of n letters times sqrt(weight(n)). Learned: only those that occur in training.

    decay: weight(n) = decay**n, above 0 and at most 1. Lengths that change no sum of float64 are left out.
    weights: weight(1), weight(2), .., none negative, instead of decay; 0 for lengths beyond.
    up_to: weight(n) = 0 for longer ones.
    alphabet: "dna", "rna", "protein", "bytes", or the letters themselves. Substrings with others do not count.
    span: (first, stop), the positions to read as in Python's slices; None reads all.
    """

    distinct = True
    threads = 1

    def __init__(
        self,
        *,
        decay: float = 1.0,
        weights: Sequence[float] | None = None,
        up_to: int | None = None,
        alphabet: str = "bytes",
        span: Span | None = None,
    ) -> None:
        if isinstance(decay, bool) or not isinstance(decay, int | float | np.number) or not 0 < decay <= 1:
            raise FeatureError(f"decay has to be a number above 0 and at most 1, and not {quoted(decay)}")
        self.decay, self.weights = float(decay), None if weights is None else _checked_weights(weights)
        if weights is not None and decay != 1.0:
            raise FeatureError("give decay or weights: both say what a length counts")
        self.up_to = None if up_to is None else checked_int("up_to", up_to, 1, LONGEST)
        if self.weights is not None and not any(self.weights[: self.up_to]):
            raise FeatureError(f"weights of all lengths up to {self.up_to} are 0, and nothing is left to count")
        self.alphabet, self.span = Alphabet(alphabet), as_span(span)
        self.bulk = True
        self.tree: SuffixTree | None = None
        self.sums: np.ndarray = np.zeros(1)
        self.loci: Loci | None = None
        self.bounds: np.ndarray | None = None

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return super().get_params(deep) | {"alphabet": self.alphabet.name}

    def weight_sums(self, longest: int) -> np.ndarray:
        """The weights of lengths 1 .. l together, for each l from 0 up to the last that counts, at most `longest`."""
        most = min(longest, self.up_to or longest)
        if self.weights is not None:
            each = np.trim_zeros(self.weights[: self.up_to], "b")
            return np.r_[0.0, np.cumsum(each[:most])]
        if self.decay == 1.0:
            return np.arange(most + 1, dtype=np.float64)
        enough = int(min(most, 1 + np.log(2.0**-60 * (1.0 - self.decay)) // np.log(self.decay)))
        total = np.r_[0.0, np.cumsum(self.decay ** np.arange(1.0, enough + 1.0))]
        return total[: int(np.argmax(total)) + 1]

    def codes(self) -> np.ndarray:
        return self.alphabet.codes

    def check(self, batch: Batch) -> BadRow | None:
        return foreign_letter(self, batch, self.alphabet)

    @property
    def checks_rows(self) -> bool:
        return not self.alphabet.takes.all()

    def _learned(self) -> SuffixTree:
        if self.tree is None:
            raise FeatureError(f"{self!r} has not seen the training data yet: call fit(X), or learn(batch)")
        return self.tree

    @property
    def dim(self) -> int:
        return self._learned().size

    @property
    def learns(self) -> bool:
        return True

    def learn(self, batch: Batch) -> FeatureMap:
        return learned(self.learner(), batch)

    def learner(self) -> Learner:
        return SubstringLearner(self)

    def with_tree(self, tree: SuffixTree) -> Self:
        twin = copy.copy(self)
        twin.tree, twin.sums = tree, self.weight_sums(int(tree.depth.max()))
        twin.loci = twin.bounds = None
        if len(twin.sums) <= int(tree.depth.max()):
            raise ValueError(f"a tree of depth {int(tree.depth.max())} has substrings that do not count")
        return twin

    def state(self) -> dict[str, np.ndarray]:
        return self._learned().state()

    def with_state(self, state: Mapping[str, np.ndarray]) -> FeatureMap:
        return self.with_tree(SuffixTree.from_state(state))

    def prepared(self, batch: Batch, threads: int = 1) -> Self:
        """Where suffixes end in the tree is found once for all passes, if there is room for it."""
        twin = copy.copy(self)
        twin.threads, twin.whole, twin.loci = threads, True, None
        rows = np.arange(len(batch), dtype=np.int64)
        starts, ends = self._places(batch, rows)
        if has_room(8 * int((ends - starts).sum()), ROOM):
            twin.loci, twin.bounds = twin._located(batch, rows)
        else:
            twin.bounds = twin._bounds_of(batch, rows)
        return twin

    def _places(self, batch: Batch, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert isinstance(batch, Strings)
        return self.places(batch, rows)

    def _read(self, batch: Batch, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        assert isinstance(batch, Strings)
        return plain(batch.letters), *self.places(batch, rows), self.codes()

    def _pieces(self, batch: Batch, rows: np.ndarray, letters: int = CALL_LETTERS) -> list[tuple[int, int]]:
        """Rows in pieces, of so many letters where they are not longer."""
        starts, ends = self._places(batch, rows)
        room = np.cumsum(ends - starts)
        cuts = [0]
        while cuts[-1] < len(rows):
            before = int(room[cuts[-1] - 1]) if cuts[-1] else 0
            cuts.append(max(cuts[-1] + 1, int(np.searchsorted(room, before + letters, side="right"))))
        return list(pairwise(cuts))

    def _over(self, batch: Batch, rows: np.ndarray, work: Callable[[slice], None]) -> None:
        """work(slice of rows), on threads."""
        for_each([slice(*piece) for piece in self._pieces(batch, rows)], work, self.threads)

    def _located(self, batch: Batch, rows: np.ndarray) -> tuple[Loci, np.ndarray]:
        """Loci, and how many non-zeros each row has at most."""
        tree, (letters, starts, ends, codes) = self._learned(), self._read(batch, rows)
        levels, bounds = tree.levels(), np.empty(len(rows), np.int64)
        first = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(ends - starts, out=first[1:])
        loci = Loci(first, np.empty(first[-1], np.uint32), np.empty(first[-1], np.float32))

        def work(some: slice) -> None:
            text = letters, starts[some], ends[some], codes
            passed = levels, bounds[some]
            sums_of.locate(*text, tuple(tree), self.sums, first[:-1][some], (loci.node, loci.lost), passed)

        self._over(batch, rows, work)
        return loci, bounds

    def _bounds_of(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        tree, (letters, starts, ends, codes) = self._learned(), self._read(batch, rows)
        levels, out = tree.levels(), np.empty(len(rows), np.int64)

        def work(some: slice) -> None:
            sums_of.most_nonzeros(letters, starts[some], ends[some], codes, tuple(tree), levels, out[some])

        self._over(batch, rows, work)
        return out

    def bound(self, batch: Batch) -> int | np.ndarray:
        if self.bounds is not None and len(self.bounds) == len(batch):
            return self.bounds
        return self._bounds_of(batch, np.arange(len(batch), dtype=np.int64))

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        placing = int(block.base), float(block.scale)
        text, tree = self._read(batch, rows), tuple(self._learned())
        sums_of.write_rows(*text, tree, self.sums, placing, block.end, block.indices, block.values)

    def _many(self, batch: Batch, rows: np.ndarray) -> bool:
        """Whether there are so many letters that a table of w is made for them."""
        starts, ends = self._places(batch, rows)
        return PASSED * int((ends - starts).sum()) > self.dim

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        self.dots(batch, rows, [w], [out])

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        tree, (letters, starts, ends, codes) = self._learned(), self._read(batch, rows)
        if not self._many(batch, rows):

            def walk(some: slice) -> None:
                text = letters, starts[some], ends[some], codes
                for w, out in zip(ws, outs, strict=True):
                    sums_of.walk_dot(*text, tuple(tree), self.sums, w, out[some])

            self._over(batch, rows, walk)
            return
        step = max(1, TABLES // (8 * len(tree.depth)))
        for at in range(0, len(ws), step):
            these, theirs, tables = ws[at : at + step], outs[at : at + step], [np.empty(len(tree.depth)) for _ in ws]
            for w, found in zip(these, tables, strict=False):
                sums_of.table(tuple(tree), self.sums, w, found)

            def look_up(some: slice, these: Arrays = these, theirs: Arrays = theirs, tables: Arrays = tables) -> None:
                loci, first, stop = self._loci_of(batch, rows[some])
                for w, out, found in zip(these, theirs, tables, strict=False):
                    sums_of.look_up(loci.node, loci.lost, first, stop, found, w, out[some])

            self._over(batch, rows, look_up)

    def _loci_of(self, batch: Batch, rows: np.ndarray) -> tuple[Loci, np.ndarray, np.ndarray]:
        """Loci in which those of these rows begin and end here."""
        if self.loci is not None:
            return self.loci, self.loci.first[rows], self.loci.first[rows.astype(np.int64) + 1]
        loci, _ = self._located(batch, rows)
        return loci, loci.first[:-1], loci.first[1:]

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        tree = self._learned()
        if not self._many(batch, rows):
            sums_of.walk_add(*self._read(batch, rows), tuple(tree), self.sums, coefficients, w)
            return
        counts = np.zeros(len(tree.depth))
        cuts = [len(counts) * k // self.threads for k in range(self.threads + 1)]
        for first, stop in self._pieces(batch, rows, CALL_LETTERS * self.threads):
            some = slice(first, stop)
            loci, begin, end = self._loci_of(batch, rows[some])

            def count(
                cut: tuple[int, int], loci: Loci = loci, begin: np.ndarray = begin, end: np.ndarray = end,
                some: slice = some,
            ) -> None:  # fmt: skip
                where = loci.node, loci.lost, begin, end
                sums_of.count(*where, coefficients[some], cut[0], counts[slice(*cut)], w)

            for_each(list(pairwise(cuts)), count, self.threads)
        sums_of.sweep(tuple(tree), self.sums, counts, w)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        tree, (letters, starts, ends, codes) = tuple(self._learned()), self._read(batch, rows)
        bounds = self._bounds_of(batch, rows) if self.bounds is None else self.bounds[rows]
        out = np.empty(len(rows))
        for first, stop in self._pieces(batch, rows):
            some = slice(first, stop)
            most = max(1, int(bounds[some].max(initial=0)))
            sums_of.squared_lengths(letters, starts[some], ends[some], codes, tree, self.sums, most, out[some])
        return out

    def occurrences(self, batch: Batch, row: int) -> Occurrences:
        """Of each suffix the sets of substrings that begin it, with the letters of the longest."""
        tree, (letters, starts, ends, codes) = self._learned(), self._read(batch, np.array([row]))
        node, above, length = (np.empty(int(ends[0] - starts[0]), np.uint32) for _ in range(3))
        sums_of.matches(letters, starts, ends, codes, tuple(tree), node, above, length)
        assert isinstance(batch, Strings)
        place = int(starts[0] - batch.bounds(np.array([row]))[0][0]) + np.arange(len(node))
        nothing = np.empty(0, np.int64)
        depth, found = tree.depth.astype(np.int64), [(nothing, np.empty(0), nothing, nothing)]
        v, u, high = node.astype(np.int64), above.astype(np.int64), length.astype(np.int64)
        while (v > 0).any():
            here = v > 0
            v, u, high, place = v[here], u[here], high[here], place[here]
            inside = v < tree.inner_nodes
            u = np.where(inside, tree.node[np.where(inside, v, 0), PARENT], u)
            weight = self.sums[depth[v]] - self.sums[depth[u]]
            part = self.sums[high] - self.sums[depth[u]]
            value = np.divide(part, np.sqrt(weight), out=np.zeros(len(v)), where=weight > 0)
            found.append((v - 1, value, place, place + high))
            v, high = u, depth[u]
        slots, values, first, stop = (np.concatenate(some) for some in zip(*found, strict=True))
        return Occurrences.of(slots, values, (first, stop))

    def invert(self, slots: np.ndarray) -> Origins:
        """Of a set of substrings the longest, if they occur several times in training, else the shortest."""
        tree, names = self._learned(), Origins.unnamed(repr(self), len(slots))
        count, letters = tree.inner_nodes, self.alphabet.letter_bytes
        for k, slot in enumerate(slots.tolist()):
            v = slot + 1
            above = 0 if v < count else int(np.searchsorted(tree.node[:, LEAF], v, side="right")) - 1
            length = int(tree.depth[v]) if v < count else int(tree.depth[above]) + 1
            names.text[k] = letters[tree.text[int(tree.edge[v, AT]) :][:length]].tobytes()
        return names


class SubstringLearner(Learner):
    """Joins the letters of all rows, and makes their tree at the end."""

    def __init__(self, phi: AllSubstrings) -> None:
        super().__init__(phi)
        self._made = phi
        self._texts: list[np.ndarray] = []

    revised = True  # each row may split the sets of all others
    sums = True
    early = False

    def join(self, other: Learner) -> None:
        assert isinstance(other, SubstringLearner)
        self._texts += other._texts

    def see(self, batch: Batch) -> None:
        assert isinstance(batch, Strings)
        starts, ends = self._made.places(batch, np.arange(len(batch), dtype=np.int64))
        text = np.empty(int((ends - starts).sum()) + len(batch), np.uint16)
        used = int(_join(plain(batch.letters), starts, ends, self._made.codes(), text))
        self._texts.append(text[:used])
        if sum(map(len, self._texts)) > MOST_LETTERS:
            raise FeatureError(
                f"{self._made!r} numbers at most {MOST_LETTERS:,} letters of training data, and there are more: "
                "use Spectrum(k).hashed(bits)"
            )

    def again(self) -> bool:
        if not any(map(len, self._texts)):
            raise FeatureError(f"{self._made!r} has found no letter in the training data")
        return False

    def done(self) -> FeatureMap:
        text = np.concatenate([np.empty(0, np.uint16), *self._texts])
        longest = int(np.diff(np.flatnonzero(np.r_[True, text == FOREIGN])).max(initial=0))
        reach = len(self._made.weight_sums(longest)) - 1
        return self._made.with_tree(SuffixTree.of(text, self._made.alphabet.size, reach))


@kernel
def _join(letters, starts, ends, codes, text):
    """The stretches of rows without a foreign letter, each followed by FOREIGN. Returns how long that is."""
    used = 0
    for j in range(len(starts)):
        for i in range(starts[j], ends[j]):
            code = codes[letters[i]]
            if code != FOREIGN or (used > 0 and text[used - 1] != FOREIGN):
                text[used] = code
                used += 1
        if used > 0 and text[used - 1] != FOREIGN:
            text[used] = FOREIGN
            used += 1
    return used


def _checked_weights(weights: object) -> tuple[float, ...]:
    try:
        each = () if isinstance(weights, str) else tuple(map(float, cast("Sequence[float]", weights)))
    except (TypeError, ValueError, OverflowError):
        each = ()
    if not any(each) or not all(0 <= weight <= LARGEST_BETA for weight in each):
        wanted = f"numbers from 0 to {LARGEST_BETA:.3g}, one for each length from 1 on and not all 0"
        raise FeatureError(f"weights has to be {wanted}, and not {quoted(weights)}")
    return each
