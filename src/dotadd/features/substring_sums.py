"""DOT, ADD and rows of all substrings, over a SuffixTree. A node is a slot, and has number 1 where the slot has 0.

sum[l] is the weight of the lengths 1 .. l together. On the edge above node v, from depth p to depth d, lie substrings
that the strings of the tree have equally often: one feature, of squared length W_v = sum[d] - sum[p]. A suffix that
matches down to v has sqrt(W_v) of it; one that ends inside of the edge, after l letters, (sum[l] - sum[p]) / sqrt(W_v).
So a suffix has sqrt(W) of each node that it passes, and of its last one that less what it lacks there, which is
(sum[d] - sum[l]) / sqrt(W_v).

While w stands still, `table` has for each node the sum over it and all above: DOT is one look at it a letter. ADD
counts at the last node of each suffix, and one sweep from the leaves to the root takes the counts to all above.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel, prefetch
from dotadd.features.suffix_tree import DEPTH, LEAF, PARENT, match

AHEAD = 16  # letters whose nodes are asked for before they are read
LOW = np.uint64(0xFFFFFFFF)


@inner
def _edge(edge, sums, v, above):
    """W of the edge between two nodes."""
    return sums[edge[v, DEPTH]] - sums[edge[above, DEPTH]]


@inner
def _lost(edge, sums, v, above, length):
    """What a suffix that ends after so many letters lacks of node v."""
    weight = _edge(edge, sums, v, above)
    return (sums[edge[v, DEPTH]] - sums[length]) / np.sqrt(weight) if weight > 0.0 else 0.0


@inner
def _longest(starts, ends):
    longest = np.int64(1)
    for j in range(len(starts)):
        longest = max(longest, ends[j] - starts[j])
    return longest


@inner
def _loci(size):
    return np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)


@inner
def _passed(loci, n, tree, levels):
    """How many nodes the n suffixes of a row pass, together; not more than there are."""
    last, above, _ = loci
    count, total = len(tree[1]) - 1, np.int64(0)
    for k in range(n):
        leaf = last[k] >= count
        node = above[k] if leaf else last[k]
        total += np.searchsorted(levels, np.int64(node), side="right") - 1 + leaf
    return min(total, len(tree[3]) - 1)


@kernel
def locate(letters, starts, ends, codes, tree, sums, first, found, passed):
    """found: the last node of each suffix, and what it lacks of it, from first[j] on for row j. passed: the first node
    of each level of the tree, and how many nodes all suffixes of a row pass, which is written."""
    loci, edge = _loci(_longest(starts, ends)), tree[3]
    last, above, length = loci
    nodes, losts = found
    levels, out = passed
    for j in range(len(starts)):
        match(letters, starts[j], ends[j], codes, tree, loci, 0)
        out[j] = _passed(loci, ends[j] - starts[j], tree, levels)
        for k in range(ends[j] - starts[j]):
            v = last[k]
            nodes[first[j] + k] = v
            whole = length[k] == edge[v, DEPTH]
            losts[first[j] + k] = 0.0 if whole else _lost(edge, sums, v, above[k], length[k])


@kernel
def most_nonzeros(letters, starts, ends, codes, tree, levels, out):
    """How many nodes all suffixes of each row pass, together."""
    loci = _loci(_longest(starts, ends))
    for j in range(len(starts)):
        match(letters, starts[j], ends[j], codes, tree, loci, 0)
        out[j] = _passed(loci, ends[j] - starts[j], tree, levels)


@kernel
def table(tree, sums, w, out):
    """<w, .> of all nodes on the way to each one."""
    node, edge = tree[1], tree[3]
    inner_nodes = len(node) - 1
    out[0] = 0.0
    for v in range(1, inner_nodes):
        above = np.int64(node[v, PARENT])
        out[v] = out[above] + w[v - 1] * np.sqrt(_edge(edge, sums, v, above))
    for u in range(inner_nodes):
        for v in range(np.int64(node[u, LEAF]), np.int64(node[u + 1, LEAF])):
            out[v] = out[u] + w[v - 1] * np.sqrt(_edge(edge, sums, v, u))


@kernel
def look_up(nodes, losts, first, stop, found, w, out):
    """DOT by a table."""
    n = np.int64(len(nodes))
    for j in range(len(first)):
        total = 0.0
        for k in range(first[j], stop[j]):
            prefetch(found, np.int64(nodes[min(k + AHEAD, n - 1)]))
            v = nodes[k]
            total += found[v]
            if losts[k] != 0.0:
                total -= losts[k] * w[np.int64(v) - 1]
        out[j] += total


@kernel
def count(nodes, losts, first, stop, coefficients, low, counts, w):
    """ADD up to the sweep, for the nodes from `low` on: counts[v - low] of suffixes that end there; what they lack of
    it is taken from w."""
    high, n = low + len(counts), np.int64(len(nodes))
    for j in range(len(first)):
        for k in range(first[j], stop[j]):
            prefetch(counts, np.int64(nodes[min(k + AHEAD, n - 1)]) - low)
            v = np.int64(nodes[k])
            if low <= v < high:
                counts[v - low] += coefficients[j]
                if losts[k] != 0.0:
                    w[v - 1] -= coefficients[j] * losts[k]


@kernel
def sweep(tree, sums, counts, w):
    """ADD from what was counted, which is changed."""
    node, edge = tree[1], tree[3]
    inner_nodes = len(node) - 1
    for u in range(inner_nodes - 1, -1, -1):
        total = counts[u]
        for v in range(np.int64(node[u, LEAF]), np.int64(node[u + 1, LEAF])):
            w[v - 1] += counts[v] * np.sqrt(_edge(edge, sums, v, u))
            total += counts[v]
        if u > 0:
            above = np.int64(node[u, PARENT])
            w[u - 1] += total * np.sqrt(_edge(edge, sums, u, above))
            counts[above] += total


@kernel
def walk_dot(letters, starts, ends, codes, tree, sums, w, out):
    """DOT node by node, where there are too few rows for a table."""
    loci, node, edge = _loci(_longest(starts, ends)), tree[1], tree[3]
    inner_nodes = len(node) - 1
    last, above, length = loci
    for j in range(len(starts)):
        match(letters, starts[j], ends[j], codes, tree, loci, 0)
        total = 0.0
        for k in range(ends[j] - starts[j]):
            v = np.int64(last[k])
            if length[k] != edge[v, DEPTH]:
                total -= w[v - 1] * _lost(edge, sums, v, above[k], length[k])
            while v > 0:
                u = np.int64(node[v, PARENT] if v < inner_nodes else above[k])
                total += w[v - 1] * np.sqrt(_edge(edge, sums, v, u))
                v = u
        out[j] += total


@kernel
def walk_add(letters, starts, ends, codes, tree, sums, coefficients, w):
    """ADD node by node."""
    loci, node, edge = _loci(_longest(starts, ends)), tree[1], tree[3]
    inner_nodes = len(node) - 1
    last, above, length = loci
    for j in range(len(starts)):
        match(letters, starts[j], ends[j], codes, tree, loci, 0)
        for k in range(ends[j] - starts[j]):
            v = np.int64(last[k])
            if length[k] != edge[v, DEPTH]:
                w[v - 1] -= coefficients[j] * _lost(edge, sums, v, above[k], length[k])
            while v > 0:
                u = np.int64(node[v, PARENT] if v < inner_nodes else above[k])
                w[v - 1] += coefficients[j] * np.sqrt(_edge(edge, sums, v, u))
                v = u


@inner
def _row(letters, start, end, codes, tree, sums, loci, spare, out_nodes, out_values, to):
    """The non-zeros of a string, each node once, from `to` on; returns where they end.

    Last nodes are taken from the largest number down. What is counted at a node is counted at the one above it, too,
    and as numbers go level by level, those above come in the same order: a queue for leaves, a ring for the others, and
    the largest of three heads is next.
    """
    node, edge = tree[1], tree[3]
    inner_nodes = np.int64(len(node) - 1)
    last, above, length = loci
    keys, leaf_above, leaf_count, ring_node, ring_count = spare
    n = end - start
    match(letters, start, end, codes, tree, loci, 0)
    m = 0
    for k in range(n):
        if last[k] > 0:
            keys[m] = np.uint64(last[k]) << np.uint64(32) | np.uint64(k)
            m += 1
    keys[:m].sort()
    m -= 1
    queued = 0
    while m >= 0 and np.int64(keys[m] >> np.uint64(32)) >= inner_nodes:
        v, counted, lost = np.int64(keys[m] >> np.uint64(32)), 0.0, 0.0
        u = np.int64(above[keys[m] & LOW])
        while m >= 0 and np.int64(keys[m] >> np.uint64(32)) == v:
            lost += _lost(edge, sums, v, u, length[keys[m] & LOW])
            counted += 1.0
            m -= 1
        value = counted * np.sqrt(_edge(edge, sums, v, u)) - lost
        if value != 0.0:
            out_nodes[to], out_values[to] = v, value
            to += 1
        if u > 0 and queued > 0 and leaf_above[queued - 1] == u:
            leaf_count[queued - 1] += counted
        elif u > 0:
            leaf_above[queued], leaf_count[queued] = u, counted
            queued += 1
    taken, head, waiting, size = 0, 0, 0, len(ring_node)
    while True:
        v = np.int64(keys[m] >> np.uint64(32)) if m >= 0 else np.int64(0)
        if taken < queued:
            v = max(v, np.int64(leaf_above[taken]))
        if waiting > 0:
            v = max(v, np.int64(ring_node[head]))
        if v == 0:
            return to
        u, counted, lost = np.int64(node[v, PARENT]), 0.0, 0.0
        while m >= 0 and np.int64(keys[m] >> np.uint64(32)) == v:
            lost += _lost(edge, sums, v, u, length[keys[m] & LOW])
            counted += 1.0
            m -= 1
        if taken < queued and leaf_above[taken] == v:
            counted += leaf_count[taken]
            taken += 1
        if waiting > 0 and ring_node[head] == v:
            counted += ring_count[head]
            head = head + 1 if head + 1 < size else 0
            waiting -= 1
        value = counted * np.sqrt(_edge(edge, sums, v, u)) - lost
        if value != 0.0:
            out_nodes[to], out_values[to] = v, value
            to += 1
        end_of_ring = head + waiting - 1
        end_of_ring = end_of_ring - size if end_of_ring >= size else end_of_ring
        if u > 0 and waiting > 0 and ring_node[end_of_ring] == u:
            ring_count[end_of_ring] += counted
        elif u > 0:
            end_of_ring = end_of_ring + 1 if end_of_ring + 1 < size else 0
            end_of_ring = head if waiting == 0 else end_of_ring
            ring_node[end_of_ring], ring_count[end_of_ring] = u, counted
            waiting += 1


@inner
def _spare(size):
    keys = np.empty(size, np.uint64)
    return keys, np.empty(size, np.uint32), np.empty(size), np.empty(size, np.uint32), np.empty(size)


@kernel
def write_rows(letters, starts, ends, codes, tree, sums, placing, cursor, out_indices, out_values):
    """Append the non-zeros of each row to a block; placing is (base, scale)."""
    base, scale = placing
    longest = _longest(starts, ends)
    loci, spare = _loci(longest), _spare(longest + 1)
    wide = out_indices.dtype.type
    for j in range(len(starts)):
        room = np.int64(cursor[j])
        stop = _row(letters, starts[j], ends[j], codes, tree, sums, loci, spare, out_indices, out_values, room)
        for k in range(room, stop):
            out_indices[k] = wide(base) + out_indices[k] - wide(1)
            out_values[k] *= scale
        cursor[j] = stop


@kernel
def squared_lengths(letters, starts, ends, codes, tree, sums, most, out):
    """|phi(z)|^2 of each row, of which none has more than so many non-zeros."""
    longest = _longest(starts, ends)
    loci, spare = _loci(longest), _spare(longest + 1)
    nodes, values = np.empty(most, np.uint32), np.empty(most)
    for j in range(len(starts)):
        stop = _row(letters, starts[j], ends[j], codes, tree, sums, loci, spare, nodes, values, 0)
        total = 0.0
        for k in range(stop):
            total += values[k] * values[k]
        out[j] = total


@kernel
def matches(letters, starts, ends, codes, tree, nodes, above, lengths):
    """Those of all rows, one after the other: for whoever wants to know the letters."""
    to = np.int64(0)
    for j in range(len(starts)):
        match(letters, starts[j], ends[j], codes, tree, (nodes, above, lengths), to)
        to += ends[j] - starts[j]
