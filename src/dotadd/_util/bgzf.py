"""BGZF: gzip in blocks of a fixed size, so that whoever has an index can begin to read in the middle.

Each block is a gzip member of its own, whose header tells how long it is; an empty one ends the file. Any program that
reads gzip reads it. All blocks but the last hold BLOCK bytes, so that where a byte of the text lies in the file follows
from its place in the text.
"""

from __future__ import annotations

import struct
import zlib
from typing import IO, Self

import numpy as np

from dotadd._util.threads import for_each

BLOCK = 65_280  # bytes of text in a block, as bgzip has it; compressed, a block is shorter than 2**16 bytes
TOGETHER = 32  # blocks that threads share out
LEVEL = 4  # of zlib: 6 takes half as long again for a few per cent
END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_HEADER = bytes.fromhex("1f8b08040000000000ff060042430200")  # and then the length of the block, less one


def cut_off(file: IO[bytes]) -> bool:
    """Whether this is BGZF that lacks the empty block at its end: gzip would take what is left for the whole. The
    file has to be one that can be sought in, and is left at its beginning."""
    beginning = file.read(len(_HEADER))
    whole = True
    if beginning[:4] == _HEADER[:4] and beginning[10:] == _HEADER[10:]:  # between them, time and system
        file.seek(-min(len(END), file.seek(0, 2)), 2)
        whole = file.read() == END
    file.seek(0)
    return not whole


class BlockWriter:
    """Writes blocks to an open file. Bytes do not depend on the number of threads."""

    def __init__(self, file: IO[bytes], threads: int = 1) -> None:
        self.file, self.threads = file, threads
        self.begins = [0]  # where each block begins in the file
        self._waiting = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._flush(len(self._waiting))
            self.file.write(END)

    def write(self, data: bytes | bytearray | memoryview) -> int:
        self._waiting += data
        if len(self._waiting) >= TOGETHER * BLOCK:
            self._flush(len(self._waiting) // BLOCK * BLOCK)
        return len(data)

    def places(self, offsets: np.ndarray) -> np.ndarray:
        """Of places in the text, those in the file as indexes have them: that of the block, and 16 bits within it."""
        begins = np.array(self.begins, np.uint64)
        at = offsets.astype(np.uint64)
        return begins[at // np.uint64(BLOCK)] << np.uint64(16) | at % np.uint64(BLOCK)

    def _flush(self, stop: int) -> None:
        pieces = [bytes(self._waiting[at : min(at + BLOCK, stop)]) for at in range(0, stop, BLOCK)]
        blocks = [b""] * len(pieces)

        def compress(k: int) -> None:
            blocks[k] = _block(pieces[k])

        for_each(range(len(pieces)), compress, self.threads)
        del self._waiting[:stop]
        for block in blocks:
            self.file.write(block)
            self.begins.append(self.begins[-1] + len(block))


def _block(text: bytes) -> bytes:
    for level in (LEVEL, 0):  # what cannot be compressed is stored
        deflate = zlib.compressobj(level, zlib.DEFLATED, -15)
        body = deflate.compress(text) + deflate.flush()
        length = len(_HEADER) + 2 + len(body) + 8
        if length <= 1 << 16:
            break
    return _HEADER + struct.pack("<H", length - 1) + body + struct.pack("<II", zlib.crc32(text), len(text))
