"""SymbolTable: what the labels of automata are called.

A file of symbols has a line for each, its name and its number, as OpenFst writes it. Number 0 is the empty word.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from dotadd.atomic import replacing
from dotadd.errors import AutomatonError, DataError

EPSILON_NAME = "<eps>"


class SymbolTable:
    """Names and their numbers, from 1 on in the order in which they come, unless they are given."""

    def __init__(self, names: Iterable[str] = (), *, epsilon: str = EPSILON_NAME) -> None:
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
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

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SymbolTable of {len(self):,} symbols"

    @property
    def largest(self) -> int:
        """The largest number in use."""
        return max(self._names)

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
        return number

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SymbolTable:
        """The table of a file."""
        with open(path, encoding="utf-8") as lines:
            return cls.of_lines(lines, os.fspath(path))

    @classmethod
    def of_lines(cls, lines: Iterable[str], path: str | None = None) -> SymbolTable:
        """The table of lines of a name and a number."""
        table = cls()
        table._numbers.clear()
        table._names.clear()
        for number, line in enumerate(lines, 1):
            parts = line.split()
            if not parts:
                continue
            if len(parts) != 2 or not parts[1].isdecimal():
                raise DataError("a line has to be a symbol and its number", path, number)
            name, value = parts[0], int(parts[1])
            if name in table._numbers or value in table._names:
                raise DataError(f"{name} {value}: the symbol or its number is there already", path, number)
            table._put(name, value)
        if 0 not in table._names:
            raise DataError("has no symbol with the number 0, the empty word", path)
        return table

    def lines(self) -> Iterator[str]:
        """The lines of a file of symbols."""
        return (f"{self._names[number]}\t{number}\n" for number in sorted(self._names))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file; it appears whole or not at all."""
        with replacing(path) as temporary:
            temporary.write_text("".join(self.lines()), encoding="utf-8")
