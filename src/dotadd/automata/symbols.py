"""SymbolTable: what the labels of automata are called.

A file of symbols has a line for each, its name and its number, as OpenFst writes it. Number 0 is the empty word.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator

from dotadd._util.atomic import replacing
from dotadd._util.compressed import decompressed, whole
from dotadd.errors import AutomatonError, DataError

EPSILON_NAME = "<eps>"
LARGEST = 2**31 - 1  # number of a symbol


class SymbolTable:
    """Names and their numbers, from 1 on in the order in which they come, unless they are given."""

    def __init__(self, names: Iterable[str] = (), *, epsilon: str = EPSILON_NAME) -> None:
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._largest = 0
        self._put(epsilon, 0)
        for name in names:
            self.add(name)

    def __len__(self) -> int:
        """How many symbols there are beside the empty word."""
        return len(self._numbers) - 1

    def __iter__(self) -> Iterator[str]:
        """Their names, in the order of their numbers."""
        return (self._names[number] for number in sorted(self._names) if number)

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolTable) and self._numbers == other._numbers

    def __repr__(self) -> str:
        return f"SymbolTable of {len(self):,} symbols"

    def has(self, number: int) -> bool:
        """Whether a symbol has this number."""
        return number in self._names

    @property
    def largest(self) -> int:
        """The largest number in use."""
        return self._largest

    def add(self, name: str) -> int:
        """The number of a symbol, a new one if it has none yet."""
        found = self._numbers.get(name)
        return self._put(name, self.largest + 1) if found is None else found

    def number(self, name: str) -> int:
        """The number of a symbol that has one."""
        try:
            return self._numbers[name]
        except KeyError:
            raise AutomatonError(f"there is no symbol {name!r} among the {len(self):,} that are known") from None

    def name(self, number: int) -> str:
        """The symbol of a number."""
        try:
            return self._names[number]
        except KeyError:
            raise AutomatonError(f"no symbol has the number {number}") from None

    def _put(self, name: str, number: int) -> int:
        if not name or name.split() != [name]:
            raise AutomatonError(f"a symbol has to have letters and no blanks, unlike {name!r}")
        self._numbers[name], self._names[number] = number, name
        self._largest = max(self._largest, number)
        return number

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SymbolTable:
        """The table of a file, which may be compressed."""
        with decompressed(os.fspath(path)) as (_, file):
            return cls.of_lines(whole(file, os.fspath(path)).decode("utf-8", "replace").split("\n"), os.fspath(path))

    @classmethod
    def _empty(cls) -> SymbolTable:
        table = SymbolTable()
        table._numbers.clear()
        table._names.clear()
        return table

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[str, int]]) -> SymbolTable:
        """The table of names and their numbers; the empty word has its usual name unless it is given another."""
        table = cls._empty()
        for name, number in pairs:
            if not 0 <= number <= LARGEST:
                raise AutomatonError(f"the symbol {name!r} has the number {number}, which is not from 0 to {LARGEST}")
            if name in table._numbers or number in table._names:
                raise AutomatonError(f"{name} {number}: the symbol or its number is there already")
            table._put(name, number)
        if 0 not in table._names:
            table._put(EPSILON_NAME, 0)
        return table

    @classmethod
    def of_lines(cls, lines: Iterable[str], path: str | None = None) -> SymbolTable:
        """The table of lines of a name and a number."""
        table = cls._empty()
        for number, line in enumerate(lines, 1):
            parts = line.split()
            if not parts:
                continue
            if len(parts) != 2 or not parts[1].isdecimal():
                raise DataError("a line has to be a symbol and its number", path, number)
            if len(parts[1]) > 10 or int(parts[1]) > LARGEST:
                raise DataError(f"the number {parts[1]} is beyond {LARGEST}", path, number)
            name, value = parts[0], int(parts[1])
            if name in table._numbers or value in table._names:
                raise DataError(f"{name} {value}: the symbol or its number is there already", path, number)
            table._put(name, value)
        if 0 not in table._names:
            raise DataError("has no symbol with the number 0, the empty word", path)
        return table

    def pairs(self) -> Iterator[tuple[str, int]]:
        """Names and numbers, in the order of the numbers, the empty word among them."""
        return ((self._names[number], number) for number in sorted(self._names))

    def lines(self) -> Iterator[str]:
        """The lines of a file of symbols."""
        return (f"{name}\t{number}\n" for name, number in self.pairs())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file; it appears whole or not at all."""
        with replacing(path) as temporary:
            temporary.write_text("".join(self.lines()), encoding="utf-8")


class HashedSymbols(SymbolTable):
    """Any word has a number, a hash of 31 bits that depends on the word alone.

    No table has to be passed on from training to prediction, and words may come in any order. The names of the words
    met so far are known. Among n words, about n^2 / 2^32 pairs share a number.
    """

    def add(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is not None:
            return found
        number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") % LARGEST + 1
        if number in self._names:  # the first word of this number keeps its name
            self._numbers[name] = number
            return number
        return self._put(name, number)

    def number(self, name: str) -> int:
        return self.add(name)
