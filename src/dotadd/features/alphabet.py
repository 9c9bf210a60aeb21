"""Alphabet: which bytes are letters of a string map, and the number of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dotadd.errors import FeatureError

FOREIGN = 0xFFFF  # the code of a byte that is no letter of the alphabet

NAMED = {"dna": "ACGT", "rna": "ACGU", "protein": "ACDEFGHIKLMNPQRSTVWY"}
UNKNOWN = {"protein": "BJOUXZ*"}  # amino acids that are rare, or not known for sure, and stops
NUCLEOTIDES = frozenset("ACGTUNRYSWKMBDHV")  # with the codes for one of several


@dataclass(frozen=True)
class Alphabet:
    """An alphabet by its name, or by its letters.

    "dna", "rna" and "protein" take lower case for the same letters; "bytes" is all 256 bytes; any other string is the
    letters themselves, each once, and case matters. K-mers with B, J, O, U, X, Z or * are left out of proteins.
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
    def takes(self) -> np.ndarray:
        """Whether each of the 256 bytes may stand in a string. Those that do and have no number: k-mers with them are
        left out."""
        return _takes(self.name)

    def hint(self, string: bytes) -> str:
        """Which alphabet a string with foreign letters is of, for a message."""
        letters = frozenset(string.decode("latin-1").upper())
        if self.name in ("dna", "rna"):
            other = "rna" if self.name == "dna" else "dna"
            if letters <= set(NAMED[other]):
                return f'; for {other.upper()}, give alphabet="{other}"'
            if letters <= set(NAMED["protein"] + UNKNOWN["protein"]) and not letters <= NUCLEOTIDES:
                return '; for proteins, give alphabet="protein"'
        return ""

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


@lru_cache
def _takes(name: str) -> np.ndarray:
    takes: np.ndarray = _codes(name) != FOREIGN
    for letter in UNKNOWN.get(name, ""):
        takes[[ord(letter), ord(letter.lower())]] = True
    return takes


def byte_name(byte: int) -> str:
    """A byte as a person would write it."""
    return repr(chr(byte)) if 32 <= byte < 127 else f"0x{byte:02x}"
