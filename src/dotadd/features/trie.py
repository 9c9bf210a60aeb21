"""Trie: the digits of an id, the highest first, lead from node to node. ADD and DOT in O(d |phi(z)|), d the depth.

Digits have two bits, so that a node has four children and takes 16 bytes; where |alphabet| = 4, a letter of a k-mer is
a digit of its number. No path is compressed: an id is d steps away from the root, whatever else is in the trie. The
tails of ids that share no prefix take most of the memory, which is why the paper prefers hashing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.errors import FeatureError
from dotadd.features.forms import GROUP, MISSING, Form, checked_state

DIGIT_BITS = 2
BASE = 1 << DIGIT_BITS
LARGEST_DEPTH = 64 // DIGIT_BITS
MOST_NODES = 2**32


class Trie(Form):
    """Nodes in one flat array: child c of node v is children[BASE * v + c], 0 if there is none.

    Node 0 has no children and is where a walk ends that leaves the trie. A child at the lowest level is not a node but
    the slot + 1. The trie is as deep as its largest id has digits: a longer one puts new roots above the old.
    """

    name = "trie"

    def __init__(self) -> None:
        self._children = np.zeros(BASE * 8, np.uint32)
        self._nodes, self._root, self._depth, self._count = 2, 1, 1, 0

    @property
    def size(self) -> int:
        return self._count

    def find(self, ids: np.ndarray) -> np.ndarray:
        slots = np.empty(len(ids), np.uint64)
        _find(self._children, self._root, self._depth, self._count, plain(ids), slots)
        return slots

    def insert(self, ids: np.ndarray) -> None:
        new = ids[self.find(ids) == MISSING]
        if len(new) == 0:
            return
        while int(new.max()) >> DIGIT_BITS * self._depth:
            self._reserve(1)
            self._children[BASE * self._nodes] = self._root
            self._root, self._nodes, self._depth = self._nodes, self._nodes + 1, self._depth + 1
        done = 0
        while done < len(new):
            self._reserve(self._depth)
            more, nodes, count = _insert(self._children, self._root, self._depth, self._nodes, self._count, new[done:])
            done, self._nodes, self._count = done + int(more), int(nodes), int(count)

    def _reserve(self, nodes: int) -> None:
        """See to it that so many nodes can be added."""
        wanted = self._nodes + nodes
        if wanted > MOST_NODES:
            raise FeatureError('the trie has no room for more nodes: use .indexed("hash_table")')
        if BASE * wanted > len(self._children):
            grown = np.zeros(BASE * min(max(wanted, 2 * self._nodes), MOST_NODES), np.uint32)
            grown[: len(self._children)] = self._children
            self._children = grown

    def ids(self) -> np.ndarray:
        ids = np.zeros(self._count, np.uint64)
        _collect(self._children, self._root, self._depth, ids)
        return ids

    def state(self) -> dict[str, np.ndarray]:
        shape = np.array([self._root, self._depth, self._count], np.uint64)
        return {"children": self._children[: BASE * self._nodes], "shape": shape}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        form = cls()
        children = checked_state(state, "children", (np.uint32,))
        root, depth, count = (int(number) for number in checked_state(state, "shape", (np.uint64,), 3))
        nodes = len(children) // BASE
        if len(children) % BASE or not 0 < root < nodes or not 0 < depth <= LARGEST_DEPTH or count > len(children):
            raise ValueError(f"a trie of {nodes} nodes and {count} slots, root {root} and depth {depth}")
        form._children, form._nodes, form._root, form._depth, form._count = plain(children), nodes, root, depth, count
        return form


@kernel
def _find(children, root, depth, count, ids, slots):
    at = np.empty(GROUP, np.uint64)
    n, nodes = np.uint64(len(ids)), np.uint64(len(children) // BASE)
    top = np.uint64(DIGIT_BITS * depth - 1)
    for first in range(np.uint64(0), n, np.uint64(GROUP)):
        m = min(np.uint64(GROUP), n - first)
        for g in range(m):  # ids with more digits than the trie is deep are not there; in two shifts, as 64 is too far
            fits = (ids[first + g] >> top) >> np.uint64(1) == np.uint64(0)
            at[g] = np.uint64(root) if fits else np.uint64(0)
        for level in range(depth - 1, -1, -1):
            shift = np.uint64(DIGIT_BITS * level)
            limit = nodes if level > 0 else np.uint64(count) + np.uint64(1)
            for g in range(m):
                digit = (ids[first + g] >> shift) & np.uint64(BASE - 1)
                child = np.uint64(children[at[g] * np.uint64(BASE) + digit])
                at[g] = child if child < limit else np.uint64(0)
        for g in range(m):
            slots[first + g] = at[g] - np.uint64(1) if at[g] > np.uint64(0) else MISSING


@kernel
def _insert(children, root, depth, nodes, count, ids):
    """Insert ids while there is room for a whole path. Returns how many were done, and how many nodes and slots are."""
    capacity = np.uint64(len(children) // BASE)
    nodes, count = np.uint64(nodes), np.uint64(count)
    for i in range(np.uint64(len(ids))):
        if nodes + np.uint64(depth) > capacity:
            return i, nodes, count
        at = np.uint64(root)
        for level in range(depth - 1, 0, -1):
            place = at * np.uint64(BASE) + ((ids[i] >> np.uint64(DIGIT_BITS * level)) & np.uint64(BASE - 1))
            if children[place] == 0:
                children[place] = nodes
                nodes += np.uint64(1)
            at = np.uint64(children[place])
        place = at * np.uint64(BASE) + (ids[i] & np.uint64(BASE - 1))
        if children[place] == 0:
            count += np.uint64(1)
            children[place] = count
    return np.uint64(len(ids)), nodes, count


@kernel
def _collect(children, root, depth, ids):
    """The id of each slot, by a walk over all nodes."""
    nodes = np.uint64(len(children) // BASE)
    path = np.zeros(depth + 1, np.uint64)  # the nodes from the root to where the walk is, and the next child of each
    turn = np.zeros(depth + 1, np.uint64)
    path[0] = np.uint64(root)
    level, prefix = 0, np.uint64(0)
    while level >= 0:
        digit = turn[level]
        if digit == np.uint64(BASE):
            turn[level] = np.uint64(0)
            prefix >>= np.uint64(DIGIT_BITS)
            level -= 1
            continue
        turn[level] += np.uint64(1)
        child = np.uint64(children[path[level] * np.uint64(BASE) + digit])
        if level == depth - 1:
            if np.uint64(0) < child <= np.uint64(len(ids)):
                ids[child - np.uint64(1)] = (prefix << np.uint64(DIGIT_BITS)) | digit
        elif np.uint64(0) < child < nodes:
            level += 1
            path[level] = child
            prefix = (prefix << np.uint64(DIGIT_BITS)) | digit
