"""check_source passes what keeps the contract, every format among it, and sees each way of breaking it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
import pytest
from samples import SAMPLES, WORDS, X, Y

from dotadd import Virtual, check_source
from dotadd.data.batches import DenseRows, SparseRows, Strings
from dotadd.errors import DataError
from dotadd.sources import open as open_source
from dotadd.sources.around import Kept
from dotadd.sources.base import CHUNK_BYTES, Chunk, Source
from dotadd.sources.cached import as_arrow

BAD = {
    "libsvm": "1 1:2\n1 1:x\n",
    "csv": "a,label\n1,2\nx,4\n",
    "tsv": "a\tlabel\n1\t2\n3\tx\t4\n",
    "jsonl": '{"a": 1, "label": 2}\n{"a": 3\n',
    "fasta": ">a label=1\nACGT\n>b\nCC\n",
    "lattices": "1\ta [ a 0.5 b 0.5 ]\n0\tb [ a x ]\n",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_keeps_the_contract(tmp_path, name):
    path = SAMPLES[name](tmp_path)
    bad = None
    if name in BAD:
        (tmp_path / f"bad{path.suffix}").write_text(BAD[name])
        bad = open_source(tmp_path / f"bad{path.suffix}")
    check_source(open_source(path), bad=bad)
    check_source(open_source(path, on_bad_row="skip"))
    if path.is_file():
        check_source(open_source([path, path]))


@pytest.mark.parametrize("name", ["libsvm", "csv", "txt", "fasta", "images", "texts"])
def test_arrow_copies_keep_the_contract(tmp_path, name):
    copied, _ = as_arrow(open_source(SAMPLES[name](tmp_path)))
    check_source(copied)


@pytest.mark.parametrize("x", [X, WORDS, X.reshape(-1, 1, 3)], ids=["rows", "strings", "images"])
def test_what_is_in_memory_keeps_the_contract(x):
    check_source(open_source(x, Y, np.arange(len(Y))))
    check_source(Kept(open_source(x, Y)))


@pytest.mark.parametrize("group_bytes", [None, 50])
def test_virtual_examples_are_the_same_in_chunks_of_any_size(tmp_path, monkeypatch, group_bytes):
    if group_bytes is not None:
        monkeypatch.setattr("dotadd.data.virtual.GROUP_BYTES", group_bytes)
        monkeypatch.setattr("dotadd.sources.around.GROUP_BYTES", group_bytes)
    path = SAMPLES["fasta"](tmp_path)
    check_source(Virtual(open_source(path), "shift(2)"))
    check_source(Virtual(open_source([path, path]), "shift(2)"))
    check_source(Virtual(open_source(SAMPLES["idx"](tmp_path)), "translate(1)"))


def test_sources_around_others_keep_the_contract(tmp_path):
    check_source(open_source(SAMPLES["npy"](tmp_path), Y, size=(1, 3)))
    table = open_source(SAMPLES["csv"](tmp_path))
    table.load()
    check_source(open_source(SAMPLES["csv"](tmp_path), like=table.names()))


@dataclass
class Sound(Source):
    """40 rows in as many chunks as are asked for."""

    lines: list[str] = field(default_factory=list)

    def files(self):
        return self.lines and [self.lines[0]]

    def chunks(self, nbytes=CHUNK_BYTES):
        self.skipped.clear()
        for first in range(0, len(Y), max(1, nbytes // 12)):
            span = slice(first, first + max(1, nbytes // 12))
            yield self.changed(Chunk(DenseRows(X[span]), Y[span], np.abs(X[span, 0]), first))

    def changed(self, chunk: Chunk) -> Chunk:
        return chunk


def broken(change):
    """A source whose chunks are changed so."""

    class Broken(Sound):
        def changed(self, chunk):
            return dataclasses.replace(chunk, **change(chunk))

    return Broken()


CHANGES = {
    "rows are numbered from 1": (lambda c: {"first_row": c.first_row + 1}, "numbered from 0"),
    "rows are numbered in each chunk": (lambda c: {"first_row": 0}, "numbered from 0"),
    "labels of the first rows": (lambda c: {"y": Y[: len(c)]}, "labels"),
    "too few labels": (lambda c: {"y": c.y[1:]}, "entries"),
    "weights of the first rows": (lambda c: {"weight": np.abs(X[: len(c), 0])}, "weights"),
    "weights that are negative": (lambda c: {"weight": c.weight - 9}, "weight that is not a number"),
    "lines counted in each chunk": (lambda c: {"lines": np.arange(1, len(c) + 1)}, "lines"),
    "only some have labels": (lambda c: {"y": None if c.first_row else c.y}, "only some chunks|labels"),
    "values that are no numbers": (lambda c: {"batch": DenseRows(c.batch.values * np.nan)}, "not finite"),
    "kinds that change": (
        lambda c: {"batch": Strings.from_list(["a"] * len(c))} if c.first_row else {},
        "holds strings, and the first dense rows",
    ),
    "indices outside": (
        lambda c: {"batch": SparseRows(np.arange(len(c) + 1), np.full(len(c), 3, np.int32), None, 3)},
        "index that is not from 0 to 2",
    ),
}


def test_a_sound_source_of_ones_own_passes():
    check_source(Sound())


@pytest.mark.parametrize("name", CHANGES)
def test_chunks_that_break_the_contract_are_seen(name):
    change, told = CHANGES[name]
    with pytest.raises(AssertionError, match=told):
        check_source(broken(change))


class Shuffled(Sound):
    """Another order in each pass."""

    passes = 0

    def changed(self, chunk):
        self.passes += 1
        return dataclasses.replace(chunk, batch=DenseRows(np.roll(chunk.batch.values, self.passes, 0)))


class Once(Sound):
    """Rows that are gone when they were read."""

    left = 40

    def chunks(self, nbytes=CHUNK_BYTES):
        for chunk in super().chunks(nbytes):
            if self.left > 0:
                self.left -= len(chunk)
                yield chunk


class Resumed(Sound):
    """Goes on where the last pass was left."""

    place = 0

    def chunks(self, nbytes=CHUNK_BYTES):
        for chunk in list(super().chunks(nbytes))[self.place :]:
            self.place += 1
            yield dataclasses.replace(chunk)
        self.place = 0


class InOne(Sound):
    """All rows in one chunk."""

    def chunks(self, nbytes=CHUNK_BYTES):
        yield from super().chunks()


class Torn(Sound):
    """The last row of each chunk but the last is lost."""

    def chunks(self, nbytes=CHUNK_BYTES):
        row = 0
        for chunk in super().chunks(nbytes):
            last = chunk.first_row + len(chunk) == len(Y)
            kept = chunk if last or len(chunk) == 1 else chunk.slice(0, len(chunk) - 1)
            yield dataclasses.replace(kept, first_row=row)
            row += len(kept)


class Empty(Sound):
    def chunks(self, nbytes=CHUNK_BYTES):
        yield from ()


class WithNothing(Sound):
    """A chunk of no rows."""

    def chunks(self, nbytes=CHUNK_BYTES):
        for chunk in super().chunks(nbytes):
            yield chunk.slice(0, 0)
            yield chunk


class LoadsOthers(Sound):
    def load(self, limit=None):
        return super().load(limit).take(np.arange(len(Y))[::-1])


class Outlined(Sound):
    def outline(self):
        return (dataclasses.replace(chunk, y=-chunk.y) for chunk in self.chunks())


class Adding(Sound):
    """`skipped` of all passes."""

    def chunks(self, nbytes=CHUNK_BYTES):
        self.skipped.add(DataError("bad"))
        for first in range(0, len(Y), max(1, nbytes // 12)):
            yield Chunk(DenseRows(X[first : first + max(1, nbytes // 12)]), None, None, first)


BROKEN = {
    Shuffled: "second pass",
    Once: "second pass|without examples",
    Resumed: "without examples",
    InOne: "memory stays bounded",
    Torn: "have to give the same rows",
    Empty: "without examples",
    WithNothing: "no rows",
    LoadsOthers: "load has to give",
    Outlined: "outline",
    Adding: "latest pass",
}


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_sources_that_break_the_contract_are_seen(kind):
    with pytest.raises(AssertionError, match=BROKEN[kind]):
        check_source(kind())


def placed(tmp_path, **place):
    """A source over a file of 40 lines, whose chunks say so."""
    path = str(tmp_path / "x")
    (tmp_path / "x").write_text("line\n" * len(Y))

    class Placed(Sound):
        def changed(self, chunk):
            lines = np.arange(chunk.first_row, chunk.first_row + len(chunk)) + place.get("first", 1)
            return dataclasses.replace(chunk, path=place.get("path", path), lines=lines)

    return Placed([path])


def test_rows_have_to_come_from_lines_of_files_that_are_read(tmp_path):
    check_source(placed(tmp_path))
    for place, told in (({"path": "other"}, "set path"), ({"path": None}, "set path")):
        with pytest.raises(AssertionError, match=told):
            check_source(placed(tmp_path, **place))
    for first in (0, 2):
        with pytest.raises(AssertionError, match="which has 40"):
            check_source(placed(tmp_path, first=first))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, "without a complaint"),
        (DataError("row 3: no"), "name its file"),
        (DataError("no", "x"), "name its line or its row"),
    ],
)
def test_complaints_have_to_name_file_and_line(error, told):
    class Bad(Sound):
        def chunks(self, nbytes=CHUNK_BYTES):
            if error is not None:
                raise error
            yield from super().chunks(nbytes)

    with pytest.raises(AssertionError, match=told):
        check_source(Sound(), bad=Bad(["x"]))


@pytest.mark.parametrize("error", [DataError("no", "x", 3), DataError("row 3: no", "x")])
def test_complaints_that_name_file_and_row_pass(error):
    class Bad(Sound):
        def chunks(self, nbytes=CHUNK_BYTES):
            raise error

    check_source(Sound(), bad=Bad(["x"]))
