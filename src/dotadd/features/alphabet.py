"""Which letters of a string a map reads: the Alphabet says which bytes are letters and the number of each, a Span which
positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dotadd._util.expression import quoted
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
    def letter_bytes(self) -> np.ndarray:
        """The byte of each letter's number."""
        return (
            np.arange(256, dtype=np.uint8)
            if self.name == "bytes"
            else np.frombuffer(self.letters.encode(), np.uint8).copy()
        )

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


FURTHEST = 2**62  # position

Span = tuple[int | None, int | None]


def as_span(span: Span | None) -> Span | None:
    """A checked span: (first, stop) as in Python's slices, counted from 0, negative from the end of each string."""
    if span is None:
        return None
    good = isinstance(span, tuple | list) and len(span) == 2
    if not good or not all(x is None or (isinstance(x, int) and not isinstance(x, bool)) for x in span):
        raise FeatureError(f"span has to be (first, stop), two whole numbers or None, and not {quoted(span)}")
    if any(x is not None and abs(x) > FURTHEST for x in span):
        raise FeatureError(f"span={quoted(span)} lies beyond all strings: positions go up to 2**62")
    first, stop = span
    empty = first is not None and stop is not None and (first < 0) == (stop < 0) and first >= stop
    if empty or stop == 0:
        raise FeatureError(f"span={span!r} holds no position: positions run from first to stop - 1, counted from 0")
    return (first, stop)


def clipped_length(span: Span | None, length: int) -> int:
    """Letters of the span in a string of this length."""
    return length if span is None else len(range(*slice(*span).indices(length)))


def clip(span: Span | None, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the span begins and ends in strings that begin and end here."""
    if span is None:
        return starts, ends
    first, stop = span
    low = starts if not first else _place(first, starts, ends)
    return low, ends if stop is None else np.maximum(low, _place(stop, starts, ends))


def _place(at: int, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    return np.minimum(starts + at, ends) if at >= 0 else np.maximum(ends + at, starts)
