"""Sort all suffixes of a text, in time that is linear in its letters, and tell what neighbours have in common.

The array is made by induced sorting (SA-IS: Nong, Zhang and Chan 2009): suffixes that are smaller than the next one and
follow a larger one (LMS) are sorted as a text of their own, at most half as long, and bring the others into order by
two passes over the array. The common prefixes are those of Kärkkäinen, Manzini and Puglisi (2009).

A text is an array of int32: END as its last symbol and nowhere else, BREAK between strings, letters above.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel, prefetch

END, BREAK = 0, 1
EMPTY = -1
AHEAD = 32  # suffixes whose letters are asked for before they are read: half of the time at 10^7 letters


def suffix_array(text: np.ndarray, symbols: int) -> np.ndarray:
    """Where the suffixes of this text begin, the smallest first; symbols are below `symbols`."""
    array = np.empty(len(text), np.int32)
    _sort(text, array, symbols)
    return array


def _sort(text: np.ndarray, array: np.ndarray, symbols: int) -> None:
    if len(text) == 1:
        array[0] = 0
        return
    small, counts = np.empty(len(text), np.bool_), np.zeros(symbols, np.int32)
    _classify(text, small, counts)
    count, names = _sort_pieces(text, small, counts, array)
    count, names = int(count), int(names)
    shorter = array[len(array) - count :]
    if names < count:
        _sort(shorter, array[:count], names)
    else:
        _invert(shorter, array[:count])
    _sort_all(text, small, counts, count, array)


@kernel
def _classify(text, small, counts):
    """Which suffixes are smaller than the next one; and how often each symbol occurs."""
    n = len(text)
    small[n - 1] = True
    counts[text[n - 1]] += 1
    for i in range(n - 2, -1, -1):
        small[i] = text[i] < text[i + 1] or (text[i] == text[i + 1] and small[i + 1])
        counts[text[i]] += 1


@inner
def _ends(counts, bucket):
    total = 0
    for c in range(len(counts)):
        total += counts[c]
        bucket[c] = total


@inner
def _induce(text, counts, array):
    """Bring all suffixes into order, from those that stand at the ends of their buckets in order.

    A suffix whose letter is not below the next one's is larger than the next suffix, if that is, or is LMS. What is
    smaller stands behind what is larger in the bucket of a letter, which is what `bucket` tells in the second pass.
    """
    n = len(text)
    bucket = np.empty(len(counts), np.int64)
    total = 0
    for c in range(len(counts)):
        bucket[c] = total
        total += counts[c]
    for i in range(n):
        prefetch(text, array[min(i + AHEAD, n - 1)] - 1)
        j = array[i] - 1
        if j >= 0 and text[j] >= text[j + 1]:
            array[bucket[text[j]]] = j
            bucket[text[j]] += 1
    _ends(counts, bucket)
    for i in range(n - 1, -1, -1):
        prefetch(text, array[max(i - AHEAD, 0)] - 1)
        j = array[i] - 1
        if j >= 0 and (text[j] < text[j + 1] or (text[j] == text[j + 1] and i >= bucket[text[j]])):
            bucket[text[j]] -= 1
            array[bucket[text[j]]] = j


@inner
def _same_piece(text, small, a, b):
    """Whether the pieces from one LMS suffix to the next are the same."""
    n = len(text)
    k = 0
    while True:
        if a + k >= n or b + k >= n or text[a + k] != text[b + k] or small[a + k] != small[b + k]:
            return False
        if k > 0 and small[a + k] and not small[a + k - 1]:  # so it is in the other one, too
            return small[b + k] and not small[b + k - 1]
        k += 1


@kernel
def _sort_pieces(text, small, counts, array):
    """Sort the pieces from one LMS suffix to the next, and write the number of each among those that differ to the end
    of the array, in the order of the text. Returns how many pieces there are, and how many differ."""
    n = len(text)
    array[:] = EMPTY
    bucket = np.empty(len(counts), np.int64)
    _ends(counts, bucket)
    for i in range(1, n):
        if small[i] and not small[i - 1]:
            bucket[text[i]] -= 1
            array[bucket[text[i]]] = i
    _induce(text, counts, array)
    count = 0
    for i in range(n):
        prefetch(small, array[min(i + AHEAD, n - 1)])
        j = array[i]
        if j > 0 and small[j] and not small[j - 1]:
            array[count] = j
            count += 1
    array[count:] = EMPTY
    names, before = 0, -1
    for i in range(count):
        prefetch(text, array[min(i + AHEAD, count - 1)])
        j = array[i]
        if before < 0 or not _same_piece(text, small, before, j):
            names += 1
        before = j
        array[count + j // 2] = names - 1
    at = n - 1
    for i in range(n - 1, count - 1, -1):
        if array[i] >= 0:
            array[at] = array[i]
            at -= 1
    return count, names


@kernel
def _invert(numbers, array):
    for i in range(len(numbers)):
        array[numbers[i]] = i


@kernel
def _sort_all(text, small, counts, count, array):
    """Sort all suffixes, where array[:count] tells the order of the LMS suffixes by their numbers in the text."""
    n = len(text)
    at = n - count
    for i in range(1, n):
        if small[i] and not small[i - 1]:
            array[at] = i
            at += 1
    for i in range(count):
        prefetch(array, n - count + array[min(i + AHEAD, count - 1)])
        array[i] = array[n - count + array[i]]
    array[count:] = EMPTY
    bucket = np.empty(len(counts), np.int64)
    _ends(counts, bucket)
    for i in range(count - 1, -1, -1):
        prefetch(text, array[max(i - AHEAD, 0)])
        j = array[i]
        array[i] = EMPTY
        bucket[text[j]] -= 1
        array[bucket[text[j]]] = j
    _induce(text, counts, array)


@kernel
def common_prefixes(text, array, reach, common):
    """common[i]: how many letters the suffix at i shares with the one before it in the array, up to `reach`, within
    their strings."""
    common[array[0]] = EMPTY
    n = len(array)
    for k in range(1, n):
        prefetch(common, array[min(k + AHEAD, n - 1)])
        common[array[k]] = array[k - 1]
    length = 0
    for i in range(n):
        prefetch(text, common[min(i + AHEAD, n - 1)] + length)
        j = common[i]
        if j < 0 or text[i] <= BREAK:
            common[i] = length = 0
            continue
        while text[i + length] == text[j + length] and text[i + length] > BREAK:
            length += 1
        common[i] = min(length, reach)
        length = max(length - 1, 0)


@kernel
def letters_left(text, reach, left):
    """How many letters there are from each place to the end of its string, up to `reach`."""
    length = 0
    for i in range(len(text) - 1, -1, -1):
        length = length + 1 if text[i] > BREAK else 0
        left[i] = min(length, reach)
