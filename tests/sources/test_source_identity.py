"""Which data a source holds: marks that change with it and with nothing else, and a watch over its files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dotadd import Windows
from dotadd.errors import DataError
from dotadd.sources import open as open_source
from dotadd.sources.around import Few, Kept
from dotadd.sources.base import Source
from dotadd.sources.cached import as_arrow
from dotadd.sources.identity import Watched, fingerprint


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def genome(tmp_path):
    return write(tmp_path / "g.fa", ">s\nACGT\n"), write(tmp_path / "g.gff3", "##gff-version 3\n")


def test_a_fingerprint_is_that_of_the_text_for_its_copy_too(tmp_path):
    path = write(tmp_path / "x.svm", "1 1:2 3:4\n\n-1 2:1 # c\n")
    for wrap in (lambda x: x, lambda x: open_source(x, [0, 1]), Kept, lambda x: Few(x, 1)):
        source = wrap(open_source(path))
        first = fingerprint(source)
        assert fingerprint(wrap(as_arrow(open_source(path))[0])) == first
        assert fingerprint(wrap(open_source(path))) == first


def test_a_fingerprint_changes_with_data_labels_and_options(tmp_path, genome):
    path, other = (write(tmp_path / name, "1 1:2\n-1 2:1\n") for name in ("x.svm", "y.svm"))
    os.utime(path, (5, 5))
    os.utime(other, (5, 5))
    assert fingerprint(open_source(path)) == fingerprint(open_source(other))  # moved, and not changed
    x = np.random.default_rng(0).random((3000, 1000))  # more than is looked at in full
    y = np.arange(3000)
    far = x.copy()
    far[-1, -1] += 1
    sources = [
        open_source(path), open_source(path, zero_based=True), open_source(path, [0, 1]), open_source(path, [1, 0]),
        open_source(path, None, [1.0, 2.0]), open_source([path, other]), open_source(x), open_source(x, y),
        open_source(x, y[::-1]), open_source(x, y, y), open_source(far), open_source(x[:-1]),
        open_source(x.astype(np.float32)), open_source(["ab", "c"]), open_source(["a", "bc"]),
        open_source(["a", "b"], np.array(["u", "v"], object)), open_source(["a", "b"], np.array(["u", "w"], object)),
        Windows(*genome, signal="donor"), Windows(*genome, signal="acceptor"), Windows(genome[0], signal="donor"),
        Windows(*genome, signal="donor", sample=5), Windows(*genome, signal="donor", sample=5, seed=1),
    ]  # fmt: skip
    marks = [fingerprint(source) for source in sources]
    assert len(set(marks)) == len(marks)
    assert marks == [fingerprint(source) for source in sources]
    source = open_source(path)
    for change in (
        lambda: write(path, "1 1:2\n-1 3:1\n"),
        lambda: write(path, "1 1:2\n"),
        lambda: os.utime(path, (6, 6)),
    ):
        before = fingerprint(source)
        change()
        assert fingerprint(source) != before


def test_a_source_of_ones_own_is_known_by_what_it_begins_with():
    class Own(Source):
        def __init__(self, rows):
            super().__init__()
            self.made = open_source(rows)

        def chunks(self, nbytes=0):
            return self.made.chunks()

    assert fingerprint(Own(["a", "b"])) == fingerprint(Own(["a", "b"])) != fingerprint(Own(["a", "c"]))


def test_a_watch_tells_when_a_file_was_written_replaced_or_removed(tmp_path, genome):
    path = write(tmp_path / "x.svm", "1 1:2 3:4\n\n-1 2:1 # c\n")
    copy = tmp_path / "copy"
    changes = [
        lambda: write(path, "1 1:1\n"),
        lambda: os.utime(path, (7, 7)),
        lambda: os.replace(write(copy, path.read_bytes()), path),
    ]
    for change in changes:
        watch = Watched(open_source([path, write(tmp_path / "y.svm", "1 1:1\n")]))
        watch.check()
        change()
        with pytest.raises(DataError, match=r"x\.svm: has changed while it was read"):
            watch.check()
    watch = Watched(Kept(open_source(path, np.arange(len(open_source(path).load())))))
    path.unlink()
    with pytest.raises(DataError, match=r"x\.svm: no such file"):
        watch.check()
    watch = Watched(Windows(*genome, signal="donor"))
    watch.check()
    os.utime(genome[1], (7, 7))
    with pytest.raises(DataError, match=r"g\.gff3: has changed"):
        watch.check()
    Watched(open_source(np.eye(2))).check()
