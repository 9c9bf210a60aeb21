"""check_feature_map accepts a plain map written in NumPy, and catches each way of breaking the contract."""

from __future__ import annotations

import numpy as np
import pytest

from dotadd.core.block import Block
from dotadd.data.batches import DenseRows, Strings
from dotadd.features import FeatureMap, Linear, parse
from dotadd.features.checks import check_feature_map, materialize

TEXTS = Strings.from_list(["", "abc", "aa", "hello there", "zz"])


class Letters(FeatureMap):
    """Counts of bytes: a user's own map in ten lines."""

    takes = (Strings,)
    distinct = True
    dim = 256

    def bound(self, batch):
        return np.minimum(batch.lengths(), 256)

    def fill(self, batch, rows, block):
        for j, row in enumerate(rows):
            letters, counts = np.unique(np.frombuffer(batch[row], np.uint8), return_counts=True)
            block.append(j, letters, counts)


def test_a_map_of_ten_lines_of_numpy_passes():
    check_feature_map(Letters(), TEXTS)


def test_a_users_map_composes_with_all_others():
    for phi in (
        2 * Letters() + Letters().normalized() + parse("NGrams(2, bits=6)"),
        Letters().hashed(4),
        (Letters() + Letters()).normalized(),
    ):
        check_feature_map(phi, TEXTS)


def test_a_users_map_is_written_and_parsed_by_its_name():
    phi = Letters() + parse("NGrams(2)")
    assert repr(phi) == "Letters() + NGrams(2)"
    assert parse(repr(phi), {"Letters": Letters}) == phi


def test_materialize_adds_up_what_occurs_twice():
    class Each(Letters):
        distinct = False

        def bound(self, batch):
            return batch.lengths()

        def fill(self, batch, rows, block):
            for j, row in enumerate(rows):
                block.append(j, np.frombuffer(batch[row], np.uint8), 1.0)

    check_feature_map(Each(), TEXTS)
    assert np.array_equal(materialize(Each(), TEXTS).toarray(), materialize(Letters(), TEXTS).toarray())
    assert materialize(Each(), TEXTS)[2, ord("a")] == 2


class TooSmallBound(Letters):
    def bound(self, batch):
        return np.minimum(batch.lengths(), 2)


class OneBoundTooFew(Letters):
    def bound(self, batch):
        return super().bound(batch)[:-1]


class NoBase(Letters):
    def fill(self, batch, rows, block):
        super().fill(batch, rows, Block(block.start, block.end, block.indices, block.values, scale=block.scale))


class NoScale(Letters):
    def fill(self, batch, rows, block):
        super().fill(batch, rows, Block(block.start, block.end, block.indices, block.values, base=block.base))


class OutOfRange(Letters):
    dim = 100


class FromTheStart(Letters):
    """Overwrites what other parts of a stack wrote."""

    def fill(self, batch, rows, block):
        block.end[: len(rows)] = block.start[: len(rows)]
        super().fill(batch, rows, block)


class RowsInOrder(Letters):
    """Takes the first rows of the batch, whatever it was asked for."""

    def bound(self, batch):
        return 256

    def fill(self, batch, rows, block):
        super().fill(batch, np.arange(len(rows)) % len(batch), block)


class OfTheBatch(Letters):
    """The features of a row depend on how many others are there."""

    def fill(self, batch, rows, block):
        super().fill(batch, rows, block.placed(0, len(batch)))


class NotDistinct(Letters):
    def bound(self, batch):
        return batch.lengths()

    def fill(self, batch, rows, block):
        for j, row in enumerate(rows):
            block.append(j, np.frombuffer(batch[row], np.uint8), 1.0)


class NotANumber(Letters):
    def fill(self, batch, rows, block):
        super().fill(batch, rows, block.placed(0, np.nan))


class Narrow(Letters):
    """Loses what does not fit into 32 bits."""

    def fill(self, batch, rows, block):
        super().fill(batch, rows, block)
        block.indices[:] = block.indices.astype(np.uint32)


class Unstable(Letters):
    def __init__(self, size=0):
        self.size = size

    @property
    def dim(self):
        return 256 + self.size

    def resolve(self, shape):
        return Unstable(self.size + shape.length)


class SetsInsteadOfAdding(Letters):
    def dot(self, batch, rows, w, out):
        out[:] = 0.0
        super().dot(batch, rows, w, out)


class OneTileTwice(Letters):
    def tiles(self, slots):
        return [(0, self), (0, self)]


class OtherLengths(Letters):
    def squared_norms(self, batch, rows):
        return 2.0 * super().squared_norms(batch, rows)


class ForgetsItsReach(Letters):
    """The parameter that it tells is not the one it was made with."""

    def __init__(self, reach=1):
        self.reach = reach + 1

    def __repr__(self):
        return f"ForgetsItsReach({self.reach})"


class CountsCopies(Letters):
    copies = 0

    def __copy__(self):
        twin = CountsCopies()
        twin.copies = self.copies + 1
        return twin


class RefusesItsOwnData(Linear):
    def check(self, batch):
        return Linear(n_features=1).check(batch)


class OtherView(Linear):
    def view(self, batch):
        view = super().view(batch)
        return Block(view.start, view.end, view.indices, 2 * view.values)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (TooSmallBound(), "bound promised 2"),
        (OneBoundTooFew(), "bound has 4 entries for 5 rows"),
        (NoBase(), "block.base"),
        (NoScale(), "block.scale"),
        (OutOfRange(), "indices reach from"),
        (FromTheStart(), "bound promised|outside of its part"),
        (RowsInOrder(), "in any order of rows"),
        (OfTheBatch(), "must not depend on the rows around it"),
        (NotDistinct(), "says distinct, and an index occurs twice"),
        (NotANumber(), "NaN or infinite"),
        (Narrow(), "outside of its part|64-bit|indices reach"),
        (Unstable(), "leave a resolved map as it is"),
        (SetsInsteadOfAdding(), "dot has to add"),
        (OneTileTwice(), "a tile begins at slot 0"),
        (OtherLengths(), "squared_norms has to tell lengths"),
        (ForgetsItsReach(), "parameters .* have to make the same map again"),
        (CountsCopies(), "a copy has to be equal"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, FeatureMap) else "",
)
def test_broken_maps_are_caught_with_a_sentence(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_feature_map(broken, TEXTS)


@pytest.mark.parametrize(
    ("broken", "message"), [(RefusesItsOwnData(), "check refuses row 0"), (OtherView(), "the view has to hold")]
)
def test_broken_maps_of_vectors_are_caught_with_a_sentence(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_feature_map(broken, DenseRows(np.arange(6.0).reshape(3, 2)))
