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
INNER, LEAF, LINK, PARENT = 0, 1, 2, 3
AT, DEPTH = 0, 1
FEW_CHILDREN = 8  # that are looked through one by one


class SuffixTree(NamedTuple):
    """Node 0 is the empty substring. What is read together lies together: a lookup waits for memory, and for little
    else."""

    text: np.ndarray
    node: np.ndarray
    """Of nodes with others below: the first of its children that has others below, its first leaf (those of the next
    node end both), the node without its first letter, and the node above; see INNER, LEAF, LINK and PARENT."""
    letter: np.ndarray
    """Of all nodes the first letter on the edge above; children of a node are in order, those of each sort."""
    edge: np.ndarray
    """Of all nodes where their longest substring occurs in the text, and its length; see AT and DEPTH."""

    @property
    def size(self) -> int:
        """Nodes but for the root."""
        return len(self.edge) - 1

    @property
    def inner_nodes(self) -> int:
        """Nodes with others below, the root among them; all others are leaves."""
        return len(self.node) - 1

    @property
    def depth(self) -> np.ndarray:
        return self.edge[:, DEPTH]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def levels(self) -> np.ndarray:
        """The first node of each level, among those with others below."""
        first = [0, 1]
        while first[-1] < self.inner_nodes:
            first.append(int(self.node[first[-1], INNER]))
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
            codes.astype(np.uint8), np.zeros((inner_nodes + 1, 4), np.uint32),
            np.zeros(nodes, np.uint8), np.zeros((nodes, 2), np.uint32),
        )  # fmt: skip
        _arrange(depth, at, parent, numbers, tuple(tree))
        _link(array, home, depth, at, parent, numbers, tree.node)
        return tree

    def state(self) -> dict[str, np.ndarray]:
        return {name: array.reshape(-1) for name, array in self._asdict().items()}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        """The tree with this state; ValueError or KeyError if it is none. It is read through, so that lookups may trust
        what they find."""
        text, letter = (checked_state(state, name, (np.uint8,)) for name in ("text", "letter"))
        node, edge = (checked_state(state, name, (np.uint32,)) for name in ("node", "edge"))
        if len(node) % 4 or len(node) < 8 or len(edge) != 2 * len(letter) or 4 * len(edge) < 2 * len(node) - 8:
            raise ValueError(f"{len(letter)} letters, {len(node)} and {len(edge)} numbers have no lengths of a tree")
        tree = cls(plain(text), plain(node).reshape(-1, 4), plain(letter), plain(edge).reshape(-1, 2))
        if not _is_tree(tuple(tree)):
            raise ValueError(f"{len(letter)} nodes do not make a tree")
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
    text, node, letter, edge = tree
    n, count = len(parent), len(node) - 1
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
        node[q, INNER], node[q, LEAF] = next_inner, next_leaf
        first = begin[v - 1] if v > 0 else 0
        for k in range(first, begin[v]):
            u = children[k]
            has = begin[u] > begin[u - 1]
            if has:
                number = next_inner
                queue[number] = u
                node[number, PARENT] = q
                next_inner += 1
            else:
                number = next_leaf
                next_leaf += 1
            numbers[u] = number
            edge[number, AT], edge[number, DEPTH] = at[u], depth[u]
            letter[number] = text[at[u] + depth[v]]
    node[count, INNER], node[count, LEAF] = next_inner, next_leaf


@kernel
def _link(array, home, depth, at, parent, numbers, node):
    """A node, without its first letter, is the node of that depth on the way to the next suffix."""
    n, count = len(array), len(node) - 1
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
            node[numbers[v], LINK] = numbers[path[depth[v] - 1]]
            v = chain[v]


@kernel
def _is_tree(tree):
    """Whether lookups stay inside of the arrays and come to an end, whatever they are asked."""
    text, node, _, edge = tree
    count, nodes = len(node) - 1, len(edge)
    if edge[0, DEPTH] != 0 or node[0, LINK] != 0 or node[0, PARENT] != 0 or node[0, INNER] != 1:
        return False
    if node[0, LEAF] != count or node[count, INNER] != count or node[count, LEAF] != nodes:
        return False
    for v in range(count):
        low, high = np.int64(node[v, INNER]), np.int64(node[v + 1, INNER])
        first, last = np.int64(node[v, LEAF]), np.int64(node[v + 1, LEAF])
        if low <= v or low > high or high > count or first > last or last > nodes:
            return False
        if node[v, LINK] >= count or (v > 0 and np.int64(edge[node[v, LINK], DEPTH]) + 1 != edge[v, DEPTH]):
            return False
        for u in range(low, high):
            if edge[u, DEPTH] <= edge[v, DEPTH] or node[u, PARENT] != v:
                return False
        for u in range(first, last):
            if edge[u, DEPTH] <= edge[v, DEPTH]:
                return False
    furthest = np.int64(0)
    for v in range(nodes):
        furthest = max(furthest, np.int64(edge[v, AT]) + np.int64(edge[v, DEPTH]))
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
def _child(node, letter, v, code):
    """The node below v that begins with this letter, or -1."""
    found = _seek(letter, np.int64(node[v, INNER]), np.int64(node[v + 1, INNER]), code)
    if found < 0:
        found = _seek(letter, np.int64(node[v, LEAF]), np.int64(node[v + 1, LEAF]), code)
    return found


@inner
def match(letters, start, end, codes, tree, loci, to):
    """Of each suffix of a string the longest beginning that is in the tree, written from `to` on: the node on whose
    edge it ends, the node above it, and its letters."""
    text, node, letter, edge = tree
    nodes, aboves, lengths = loci
    count = len(node) - 1
    u, high, v, length = np.int64(0), np.int64(0), np.int64(0), np.int64(0)  # the last node passed, its depth, the next
    for i in range(start, end):
        while i + length < end:
            code = codes[letters[i + length]]
            if code == FOREIGN:
                break
            if length == high:
                found = _child(node, letter, u, code)
                if found < 0:
                    break
                v = found
            elif length == edge[v, DEPTH] or text[edge[v, AT] + length] != code:
                break
            length += 1
            if length == edge[v, DEPTH] and v < count:
                u, high = v, length
        nodes[to], aboves[to], lengths[to] = u if length == high else v, u, length
        to += 1
        if length == 0:
            continue
        length -= 1
        if high > 0:
            u, high = np.int64(node[u, LINK]), high - 1
        while high < length:
            v = _child(node, letter, u, codes[letters[i + 1 + high]])
            if v < 0:  # as no tree has it
                length = high
            elif v < count and edge[v, DEPTH] <= length:
                u, high = v, np.int64(edge[v, DEPTH])
            else:
                length = min(length, np.int64(edge[v, DEPTH]))
                break
