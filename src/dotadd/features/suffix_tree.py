"""SuffixTree: all substrings of some strings, found letter by letter, in memory that is linear in the letters.

A node stands for the substrings that occur exactly where its longest one does: those that end on the edge above it. It
is a slot of w. Nodes that have others below them come first, level by level, and then the leaves, in the order of the
nodes above; so the children of a node lie together, those of the one sort and those of the other. Built from the sorted
suffixes and their common prefixes (suffix_sort.py), by a walk along the edge of what is there so far; suffix links are
found as Maass (2007) does, by one more walk in the order of the suffixes.

The suffixes of a string z are looked up one after the other (matching statistics: Chang and Lawler 1994): what is known
of one is known of the next but for its first letter, the suffix link leads there, and every letter is compared once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np

from dotadd._jit import inner, kernel, plain, prefetch
from dotadd.features.alphabet import FOREIGN
from dotadd.features.forms import checked_state
from dotadd.features.suffix_sort import AHEAD, BREAK, END, common_prefixes, letters_left, suffix_array

MOST_LETTERS = 2**31 - 2  # with the breaks between strings, and END
FEW_CHILDREN = 8  # that are looked through one by one


class SuffixTree(NamedTuple):
    """Children of node v are inner[v] .. inner[v + 1] - 1 and leaf[v] .. leaf[v + 1] - 1, each sort by letter. The
    longest substring of node v is text[at[v] : at[v] + depth[v]]; node 0 is the empty one."""

    text: np.ndarray
    inner: np.ndarray
    leaf: np.ndarray
    letter: np.ndarray
    """The first letter on the edge above each node."""
    at: np.ndarray
    depth: np.ndarray
    link: np.ndarray
    """Of a node with others below, the one without its first letter."""
    parent: np.ndarray
    """Of a node with others below, the one above."""

    @property
    def size(self) -> int:
        """Nodes but for the root."""
        return len(self.depth) - 1

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def levels(self) -> np.ndarray:
        """The first node of each level, among those with others below."""
        first = [0, 1]
        while first[-1] < len(self.parent):
            first.append(int(self.inner[first[-1]]))
        return np.array(first, np.int64)

    @classmethod
    def of(cls, codes: np.ndarray, symbols: int, reach: int) -> Self:
        """Of strings one after the other, numbers of letters below `symbols`, each string followed by FOREIGN; of their
        substrings up to `reach` letters."""
        text = np.empty(len(codes) + 1, np.int32)
        _as_symbols(codes, text)
        array = suffix_array(text, symbols + 2)
        common, left = np.empty(len(text), np.int32), np.empty(len(text), np.int32)
        common_prefixes(text, array, reach, common)
        letters_left(text, reach, left)
        del text
        array = array[1 + np.count_nonzero(codes == FOREIGN) :]  # those that begin with no letter are the smallest
        depth, at, parent = (np.zeros(2 * len(array) + 1, np.int32) for _ in range(3))
        home = left  # where each suffix ends; how long it is is not asked for again
        nodes = int(_grow(array, common, left, home, depth, at, parent, int(left.max(initial=0))))
        del common
        depth, at, parent = depth[:nodes], at[:nodes], parent[:nodes]
        numbers, inner_nodes = np.empty(nodes, np.uint32), int(_count_inner(parent))
        tree = cls(
            codes.astype(np.uint8),
            np.empty(inner_nodes + 1, np.uint32), np.empty(inner_nodes + 1, np.uint32),
            np.zeros(nodes, np.uint8), np.zeros(nodes, np.uint32), np.zeros(nodes, np.uint32),
            np.zeros(inner_nodes, np.uint32), np.zeros(inner_nodes, np.uint32),
        )  # fmt: skip
        _arrange(depth, at, parent, numbers, tuple(tree))
        _link(array, home, depth, at, parent, numbers, tree.link)
        return tree

    def state(self) -> dict[str, np.ndarray]:
        """All but what follows from it."""
        return {name: array for name, array in self._asdict().items() if name != "parent"}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        """The tree with this state; ValueError or KeyError if it is none. It is read through, so that lookups may trust
        what they find."""
        sizes = {"text": np.uint8, "letter": np.uint8}
        arrays = {
            name: plain(checked_state(state, name, (sizes.get(name, np.uint32),)))
            for name in cls._fields
            if name != "parent"
        }
        count, nodes = len(arrays["link"]), len(arrays["depth"])
        lengths = {"inner": count + 1, "leaf": count + 1, "letter": nodes, "at": nodes, "depth": nodes, "link": count}
        wrong = [name for name, length in lengths.items() if len(arrays[name]) != length]
        if wrong or count < 1 or nodes < count:
            raise ValueError(f"a tree of {nodes} nodes has other lengths of {', '.join(wrong)}")
        parent = np.zeros(count, np.uint32)
        tree = cls(**arrays, parent=parent)
        if not _is_tree(tuple(tree)):
            raise ValueError(f"{nodes} nodes do not make a tree")
        return tree


@kernel
def _as_symbols(codes, text):
    for i in range(len(codes)):
        text[i] = BREAK if codes[i] == FOREIGN else np.int32(codes[i]) + 2
    text[len(codes)] = END


@kernel
def _grow(array, common, left, home, depth, at, parent, longest):
    """Nodes as they are met, suffix by suffix in their order. `home` may be `left`. Returns how many there are."""
    path = np.zeros(longest + 2, np.int32)  # from the root to where the last suffix ends
    top, count, n = 0, 1, len(array)
    for k in range(n):
        ahead = array[min(k + AHEAD, n - 1)]
        prefetch(common, ahead)
        prefetch(left, ahead)
        s = array[k]
        shared, length = common[s], left[s]
        last = np.int32(0)
        while depth[path[top]] > shared:
            last = path[top]
            top -= 1
        if depth[path[top]] < shared:
            depth[count], at[count], parent[count] = shared, at[last], path[top]
            parent[last] = count
            top += 1
            path[top] = count
            count += 1
        if length > shared:
            depth[count], at[count], parent[count] = length, s, path[top]
            top += 1
            path[top] = count
            count += 1
        home[s] = path[top]
    return count


@kernel
def _count_inner(parent):
    """How many nodes have others below them, the root among them."""
    seen = np.zeros(len(parent), np.bool_)
    seen[0] = True
    count = 1
    for v in range(1, len(parent)):
        if not seen[parent[v]]:
            seen[parent[v]] = True
            count += 1
    return count


@kernel
def _arrange(depth, at, parent, numbers, tree):
    """Write the nodes into the tree, level by level, and the number that each one has there. Nodes below the same one
    were met in the order of their letters."""
    text, inner_, leaf, letter, new_at, new_depth, _, above = tree
    n, count = len(parent), len(above)
    begin = np.zeros(n + 1, np.int32)
    for v in range(1, n):
        begin[parent[v] + 1] += 1
    for v in range(n):
        begin[v + 1] += begin[v]
    children = np.empty(n, np.int32)
    for v in range(1, n):
        children[begin[parent[v]]] = v
        begin[parent[v]] += 1
    queue = np.zeros(count, np.int32)  # begin[v] is where the children of v end by now
    numbers[0] = 0
    next_inner, next_leaf = 1, count
    for q in range(count):
        v = queue[q]
        inner_[q], leaf[q] = next_inner, next_leaf
        first = begin[v - 1] if v > 0 else 0
        for k in range(first, begin[v]):
            u = children[k]
            has = begin[u] > begin[u - 1]
            if has:
                number = next_inner
                queue[number] = u
                above[number] = q
                next_inner += 1
            else:
                number = next_leaf
                next_leaf += 1
            numbers[u] = number
            new_at[number], new_depth[number] = at[u], depth[u]
            letter[number] = text[at[u] + depth[v]]
    inner_[count], leaf[count] = next_inner, next_leaf


@kernel
def _link(array, home, depth, at, parent, numbers, link):
    """A node, without its first letter, is the node of that depth on the way to the next suffix."""
    n, count = len(array), len(link)
    head = np.full(len(home) + 1, -1, np.int32)  # nodes that begin at a place, as a chain
    chain = np.full(len(depth), -1, np.int32)
    longest = 0
    for v in range(1, len(depth)):
        longest = max(longest, depth[v])
        if numbers[v] < count and depth[v] > 1:
            chain[v] = head[at[v] + 1]
            head[at[v] + 1] = v
    path = np.zeros(longest + 1, np.int32)  # the node of each depth on the way to the last suffix
    for k in range(n):
        ahead = array[min(k + AHEAD, n - 1)]
        prefetch(home, ahead)
        prefetch(head, ahead)
        s = array[k]
        v = home[s]
        while path[depth[v]] != v:
            path[depth[v]] = v
            v = parent[v]
        v = head[s]
        while v >= 0:
            link[numbers[v]] = numbers[path[depth[v] - 1]]
            v = chain[v]


@kernel
def _is_tree(tree):
    """Whether lookups stay inside of the arrays, whatever they are asked; writes `parent`."""
    text, inner_, leaf, _, at, depth, link, parent = tree
    count, nodes = len(link), len(depth)
    if depth[0] != 0 or link[0] != 0 or inner_[0] != 1 or inner_[count] != count:
        return False
    if leaf[0] != count or leaf[count] != nodes:
        return False
    for v in range(count):
        if inner_[v + 1] < inner_[v] or leaf[v + 1] < leaf[v] or inner_[v] <= v:
            return False
        if link[v] >= count or (v > 0 and np.int64(depth[link[v]]) + 1 != depth[v]):
            return False
        if inner_[v + 1] > count or leaf[v + 1] > nodes:
            return False
        for u in range(np.int64(inner_[v]), np.int64(inner_[v + 1])):
            if depth[u] <= depth[v]:
                return False
            parent[u] = v
        for u in range(np.int64(leaf[v]), np.int64(leaf[v + 1])):
            if depth[u] <= depth[v]:
                return False
    furthest = np.int64(0)
    for v in range(nodes):
        furthest = max(furthest, np.int64(at[v]) + np.int64(depth[v]))
    return furthest <= len(text)


@inner
def _seek(letter, low, high, code):
    """The node with this letter among those from `low` on, which are in order; -1 if there is none."""
    while high - low > FEW_CHILDREN:
        middle = (low + high) // 2
        if letter[middle] <= code:
            low = middle
        else:
            high = middle
    for v in range(low, high):
        if letter[v] == code:
            return v
    return -1


@inner
def _child(inner_, leaf, letter, v, code):
    """The node below v that begins with this letter, or -1."""
    found = _seek(letter, np.int64(inner_[v]), np.int64(inner_[v + 1]), code)
    if found < 0:
        found = _seek(letter, np.int64(leaf[v]), np.int64(leaf[v + 1]), code)
    return found


@inner
def match(letters, start, end, codes, tree, loci, to):
    """Of each suffix of a string the longest beginning that is in the tree, written from `to` on: the node on whose
    edge it ends, the node above it, and its letters."""
    text, inner_, leaf, letter, at, depth, link, _ = tree
    nodes, aboves, lengths = loci
    count = len(link)
    u, high, v, length = np.int64(0), np.int64(0), np.int64(0), np.int64(0)  # the last node passed, its depth, the next
    for i in range(start, end):
        while i + length < end:
            code = codes[letters[i + length]]
            if code == FOREIGN:
                break
            if length == high:
                found = _child(inner_, leaf, letter, u, code)
                if found < 0:
                    break
                v = found
            elif length == depth[v] or text[at[v] + length] != code:
                break
            length += 1
            if length == depth[v] and v < count:
                u, high = v, length
        nodes[to], aboves[to], lengths[to] = u if length == high else v, u, length
        to += 1
        if length == 0:
            continue
        length -= 1
        if high > 0:
            u, high = np.int64(link[u]), high - 1
        while high < length:
            v = _child(inner_, leaf, letter, u, codes[letters[i + 1 + high]])
            if v < 0:  # as no tree has it
                length = high
            elif v < count and depth[v] <= length:
                u, high = v, np.int64(depth[v])
            else:
                length = min(length, np.int64(depth[v]))
                break
