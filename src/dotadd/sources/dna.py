"""DNA of one length in two bits a letter: four letters a byte, the first in the lowest bits; A C G T are 0 1 2 3."""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.data.batches import Strings

_CODES = np.full(256, 255, np.uint8)
for _code, _letters in enumerate((b"Aa", b"Cc", b"Gg", b"Tt")):
    for _letter in _letters:
        _CODES[_letter] = _code
_CAPITALS = np.where(np.arange(256) < ord("a"), _CODES, 255).astype(np.uint8)
_LETTERS = np.uint32(int.from_bytes(b"ACGT", "little"))


def fixed_width(strings: Strings) -> int | None:
    """The length of every string, None where they differ or are empty."""
    if strings.width is not None:
        return strings.width
    lengths = strings.lengths()
    return int(lengths[0]) if len(lengths) and lengths[0] > 0 and (lengths == lengths[0]).all() else None


def pack(strings: Strings, width: int, *, capitals: bool = False) -> np.ndarray | None:
    """An array of shape (rows, bytes a row), or None if some string has another length or another letter than ACGT.

    With `capitals`, small letters are others.
    """
    if fixed_width(strings) != width:
        return None
    first = 0 if strings.offsets is None else int(strings.offsets[0])
    packed = np.zeros((len(strings), (width + 3) // 4), np.uint8)
    codes = _CAPITALS if capitals else _CODES
    sound = _pack(plain(strings.letters[first : first + len(strings) * width]), width, codes, packed)
    return packed if sound else None


def unpack(packed: np.ndarray, width: int) -> Strings:
    """The strings again, in capital letters."""
    letters = np.empty(len(packed) * width, np.uint8)
    _unpack(plain(packed), width, letters)
    return Strings(letters, width=width)


@kernel
def _pack(letters, width, codes, packed):
    wrong = np.uint8(0)
    for row in range(len(packed)):
        base = np.uint64(row * width)
        for k in range(np.uint64(width)):
            code = codes[letters[base + k]]
            wrong |= code
            packed[row, k >> np.uint64(2)] |= code << (np.uint8(2) * np.uint8(k & np.uint64(3)))
    return wrong < np.uint8(4)


@kernel
def _unpack(packed, width, letters):
    whole = np.uint64(width // 4)
    for row in range(len(packed)):
        base = np.uint64(row * width)
        for b in range(whole):
            byte = np.uint32(packed[row, b])
            for j in range(np.uint64(4)):
                code = (byte >> np.uint32(2 * j)) & np.uint32(3)
                letters[base + np.uint64(4) * b + j] = np.uint8(_LETTERS >> (np.uint32(8) * code))
        for k in range(np.uint64(4) * whole, np.uint64(width)):
            code = (np.uint32(packed[row, k >> np.uint64(2)]) >> np.uint32(2 * (k & np.uint64(3)))) & np.uint32(3)
            letters[base + k] = np.uint8(_LETTERS >> (np.uint32(8) * code))
