"""Ids of output strings: a number below 2**63 for each string of labels, made label by label.

A string of up to seven labels that are bytes is its own number, the bytes one after the other, so that no two of them
meet and the text can be read off. Others are a hash of 62 bits and stand above all of these. The empty string is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd._jit import inner

WRITTEN_OUT = 7  # bytes
EMPTY = np.uint64(0)
_ROOM = np.uint64(1 << 8 * (WRITTEN_OUT - 1))  # what is below it has room for one more byte
_HASHED = np.uint64(1 << 62)


@inner
def extended(prefix, label):
    """The id of a string, given that of all but its last label."""
    if prefix < _ROOM and label < np.uint64(256):
        return np.uint64(prefix << np.uint64(8) | label)
    h = np.uint64((prefix + label) * np.uint64(0x9E3779B97F4A7C15) + label)
    h = np.uint64((h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    h = np.uint64((h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    return np.uint64((h ^ (h >> np.uint64(31))) & (_HASHED - np.uint64(1)) | _HASHED)


def id_of(labels: Sequence[int]) -> int:
    """The id of a string of labels."""
    number = EMPTY
    for label in labels:
        number = extended(number, np.uint64(label))
    return int(number)


def letters_of(number: int) -> bytes | None:
    """The bytes of a string that is its own number; None of a hash."""
    return int(number).to_bytes(WRITTEN_OUT, "big").lstrip(b"\0") if number < 1 << 8 * WRITTEN_OUT else None
