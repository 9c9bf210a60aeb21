"""Alphabet: which bytes are letters of a string map, and the number of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dotadd.errors import FeatureError

FOREIGN = 0xFFFF  # the code of a byte that is no letter of the alphabet

NAMED = {"dna": "ACGT", "rna": "ACGU", "protein": "ACDEFGHIKLMNPQRSTVWY"}


@dataclass(frozen=True)
class Alphabet:
    """An alphabet by its name, or by its letters.

    "dna", "rna" and "protein" take lower case for the same letters; "bytes" is all 256 bytes; any other string is the
    letters themselves, each once, and case matters.
    """

    name: str

    def __post_init__(self) -> None:
        name = self.name
        if isinstance(name, str) and (name in NAMED or name == "bytes"):
            return
        if not isinstance(name, str) or len(name) < 2 or len(set(name)) < len(name) or not name.isascii():
            known = ", ".join([*NAMED, "bytes"])
            raise FeatureError(f"{name!r} is no alphabet: give one of {known}, or two or more different ASCII letters")

    @property
    def size(self) -> int:
        return 256 if self.name == "bytes" else len(self.letters)

    @property
    def letters(self) -> str:
        """The letters in the order of their numbers."""
        return NAMED.get(self.name, self.name)

    @property
    def codes(self) -> np.ndarray:
        """The number of each of the 256 bytes, or FOREIGN."""
        return _codes(self.name)

    @property
    def title(self) -> str:
        """What to call it in a message."""
        return f"{self.name} ({self.letters})" if self.name in NAMED else repr(self.name)


@lru_cache
def _codes(name: str) -> np.ndarray:
    if name == "bytes":
        return np.arange(256, dtype=np.uint16)
    codes = np.full(256, FOREIGN, np.uint16)
    for number, letter in enumerate(NAMED.get(name, name)):
        codes[ord(letter)] = number
        if name in NAMED:
            codes[ord(letter.lower())] = number
    return codes


def byte_name(byte: int) -> str:
    """A byte as a person would write it."""
    return repr(chr(byte)) if 32 <= byte < 127 else f"0x{byte:02x}"
