"""Forms of w: how the id of a feature, a 64-bit number, becomes a slot of the flat vector that solvers work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotadd._lazy import lazy

if TYPE_CHECKING:
    from dotadd.weights.base import MISSING as MISSING
    from dotadd.weights.base import Form as Form
    from dotadd.weights.dense import Dense as Dense
    from dotadd.weights.hash_table import HashTable as HashTable
    from dotadd.weights.hashed import Hashed as Hashed
    from dotadd.weights.sorted_array import SortedArray as SortedArray
    from dotadd.weights.trie import Trie as Trie

__all__, __getattr__ = lazy(
    __name__,
    {
        ".base": ["MISSING", "Form"],
        ".dense": ["Dense"],
        ".hash_table": ["HashTable"],
        ".hashed": ["Hashed"],
        ".sorted_array": ["SortedArray"],
        ".trie": ["Trie"],
    },
)
