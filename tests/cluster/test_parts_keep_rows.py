"""Parts that keep rows of phi have the same examples: same bits, each row is made once, and room is shared out."""

import numpy as np
import pytest
from problems import Counting, labels, texts

from dotadd import BagOfWords, LinearSVM
from dotadd.cluster.engine import LocalEngine
from dotadd.cluster.requests import Begin
from dotadd.cluster.shard import Shard
from dotadd.data.batches import Strings
from dotadd.sources.base import Chunk
from dotadd.sources.memory import MemorySource

ROOM = 1 << 24


def parts_of(lines, *beside):
    """Parts of neighbouring lines, each with so much memory beside what they take themselves."""
    y, members = labels(lines), []
    for number, (mine, room) in enumerate(zip(np.array_split(np.arange(len(lines)), len(beside)), beside, strict=True)):
        chunk = Chunk(Strings.from_list([lines[row] for row in mine]), y[mine], None, 0)
        members.append(Shard(MemorySource(chunk), chunk.nbytes + room, number=number))
    return LocalEngine(members)


def fitted(engine, phi, **options):
    return LinearSVM(phi, random_state=0, **options).fit(None, engine=engine)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_same_bits_with_and_without_keeping_where_no_word_comes_twice(loss):
    lines = texts(150, seed=4, repeat=False)
    kept, made = (
        fitted(parts_of(lines, ROOM, ROOM, ROOM), BagOfWords(bits=16), loss=loss, keep=keep, tol=0.01)
        for keep in (True, False)
    )
    assert (kept.result_.kept_rows, made.result_.kept_rows) == (150, 0)
    assert kept.result_.kept_bytes > made.result_.kept_bytes == 0
    assert kept.coef_.tobytes() == made.coef_.tobytes()
    assert kept.result_.gap == pytest.approx(made.result_.gap, rel=1e-9)  # what rounding may do is known better


@pytest.mark.parametrize("solver", ["cocoa", "average"])
def test_every_row_is_made_once_where_there_is_room_and_again_and_again_without(solver):
    lines, counts = texts(60), []
    for keep in (True, False):
        made = np.zeros(20, int)  # rows have the same numbers in each part
        svm = fitted(parts_of(lines, ROOM, ROOM, ROOM), Counting(made), solver=solver, keep=keep, tol=0.3)
        counts.append(made)
    assert svm.result_.passes > 1 or solver == "average"
    assert counts[0].tolist() == [3] * 20
    assert counts[1].min() > 9


def test_a_part_keeps_what_its_memory_has_room_for_and_gives_back_what_it_does_not_need():
    lines = texts(600, seed=5, longest=200)
    engine = parts_of(lines, 12_000, ROOM, 500)
    svm = fitted(engine, BagOfWords(bits=10), C=0.1)
    free = fitted(parts_of(lines, ROOM, ROOM, ROOM), BagOfWords(bits=10), C=0.1)
    assert svm.result_.primal == pytest.approx(free.result_.primal, rel=2e-3)
    rows = [part.rows for part in engine.members]
    kept = [one.kept for one in rows]
    assert 0 < kept[0][0] < 200 == kept[1][0]
    assert svm.result_.kept_rows == sum(count for count, _ in kept)
    assert svm.result_.kept_bytes == sum(nbytes for _, nbytes in kept)
    for one in rows:
        assert one.loaded <= one.nbytes <= one.memory
    assert rows[1].nbytes == rows[1].loaded  # equal words have become one, and the rest is there for other parts
    before = rows[1].nbytes
    engine.round(Begin(engine.members[1].task))  # training begins anew
    assert rows[1].kept == (0, 0)
    assert rows[1].nbytes < before
