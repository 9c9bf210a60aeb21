"""BGZF: what is written is gzip, block after block of a known size, the same for any number of threads."""

import gzip
import io
import random
import struct
import warnings

import numpy as np
import pytest

from dotadd._util.bgzf import BLOCK, END, BlockWriter
from dotadd._util.compressed import decompressed
from dotadd.errors import CutOffWarning


def written(pieces, threads=1):
    file = io.BytesIO()
    with BlockWriter(file, threads) as blocks:
        for piece in pieces:
            blocks.write(piece)
    return file.getvalue(), blocks


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 40 * BLOCK + 7])
def test_gzip_reads_what_was_written_and_places_are_those_of_blocks(size):
    rng = random.Random(size)
    text = rng.randbytes(size // 2) + b"A" * (size - size // 2)  # what cannot be compressed, and what can
    cuts = sorted(rng.randrange(size + 1) for _ in range(5))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    data, blocks = written(pieces)
    assert gzip.decompress(data) == text
    assert data.endswith(END)
    assert written([text], threads=2)[0] == data
    for offset in [0, size // 3, size]:
        place = int(blocks.places(np.array([offset]))[0])
        begin, within = place >> 16, place & 0xFFFF
        (length,) = struct.unpack_from("<H", data, begin + 16)
        rest = gzip.decompress(data[begin : begin + length + 1])
        assert rest[within:] == text[offset : offset + len(rest) - within]


def test_a_file_that_lacks_its_last_block_is_told_of(tmp_path):
    """What is left of it is whole gzip: only the empty block at the end tells. Gzip of others has none."""
    data, blocks = written([b"ACGT" * BLOCK])
    path = tmp_path / "x.gz"
    for beginning in (data[: -len(END)], data[: blocks.begins[2]]):
        path.write_bytes(beginning)
        with pytest.warns(CutOffWarning, match=r"x\.gz: .*cut off"), decompressed(str(path)) as (_, file):
            assert file.read() == gzip.decompress(beginning)
    for whole in (data, END, gzip.compress(b"ACGT"), gzip.compress(b""), data + written([b"more"])[0]):
        path.write_bytes(whole)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with decompressed(str(path)) as (_, file):
                assert file.read() == gzip.decompress(whole)
