"""Rows of phi as a batch are those rows, and features lie in memory where they are no larger, or all fit."""

import numpy as np
import pytest

from dotadd._util.memory import Budget
from dotadd.core.block import every_row
from dotadd.data.batches import DenseRows, Strings
from dotadd.data.table import Cells, Table
from dotadd.features.base import Shape
from dotadd.features.expression import parse
from dotadd.features.linear import Linear
from dotadd.problem.examples import InMemory
from dotadd.problem.expanded import expanded, worth_expanding
from dotadd.problem.packed import Packed

RNG = np.random.default_rng(0)
MAILS = Strings.from_list([" ".join(RNG.choice(["a", "word", "another", "and"], 30)) for _ in range(40)])
READS = Strings.from_list(["".join(RNG.choice(list("ACGT"), 40)) for _ in range(40)])
TABLE = Table.from_columns(
    {
        "age": Cells(RNG.normal(size=40)),
        "size": Cells(RNG.normal(size=40)),
        "job": Cells(strings=Strings.from_list([f"job{k % 7}" for k in range(40)])),
    }
)
VECTORS = DenseRows(RNG.normal(size=(40, 5)).astype(np.float32))


def over(phi, batch, **options):
    return InMemory(parse(phi).resolve(Shape.of(batch)).learn(batch), batch, **options)


@pytest.mark.parametrize("keeping", [0, 500, 1 << 20])
@pytest.mark.parametrize(
    ("phi", "batch"),
    [
        ("BagOfWords(bits=6)", MAILS),
        ("NGrams((2, 3), bits=5).normalized()", MAILS),
        ("Spectrum(2)", READS),
        ("Number('age', 'size') + Category('job').hashed(5)", TABLE),
        ("Polynomial(2)", VECTORS),
    ],
)
def test_expanded_rows_are_the_rows_of_phi_with_each_index_once(phi, batch, keeping):
    examples = over(phi, batch, dtype=np.float64, budget=Budget(keeping) if keeping else None)
    rows = RNG.permutation(40)[:25].astype(np.uint32)
    found = expanded(examples, rows)
    dense = np.zeros((25, examples.dim))
    over(phi, batch, dtype=np.float64).dense([(rows, np.arange(25), dense)])
    out, packed = np.zeros_like(dense), InMemory(Packed(examples.dim, np.float64), found, dtype=np.float64)
    for block, at, some in packed.blocks(every_row(25)):
        for place, row in zip(at, some, strict=True):
            mine = slice(block.start[place], block.end[place])
            assert len(np.unique(block.indices[mine])) == mine.stop - mine.start
            out[row, block.indices[mine]] = block.values[mine]
    np.testing.assert_allclose(out, dense, rtol=1e-12)
    assert len(found) == 25
    assert packed.phi.distinct


@pytest.mark.parametrize(
    ("phi", "batch", "room", "wanted"),
    [
        ("BagOfWords(bits=6)", MAILS, 0, True),  # few words, again and again
        ("Number('age', 'size') + Category('job').hashed(5)", TABLE, 0, True),  # 24 bytes for each cell
        ("Number('age', 'size')", TABLE, 0, True),  # as quick to make, but smaller
        ("NGrams((2, 3), bits=16)", MAILS, 0, False),
        ("NGrams((2, 3), bits=16)", MAILS, 10_000, True),
        ("Spectrum(3)", READS, 10_000, False),  # made as fast as they are read
        ("Linear()", VECTORS, 10_000, False),  # these are their features
    ],
)
def test_features_are_kept_where_they_are_no_larger_or_all_fit_and_are_slow_to_make(phi, batch, room, wanted):
    assert worth_expanding(over(phi, batch), np.arange(40, dtype=np.uint32), room) == wanted


def test_a_sample_of_few_rows_is_all_of_them():
    examples = InMemory(Linear(n_features=5), VECTORS)
    for count in (1, 2, 39):
        assert not worth_expanding(examples, np.arange(count, dtype=np.uint32), 0.0)
