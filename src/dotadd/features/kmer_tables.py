"""DOT, ADD and lengths of many strings with tables of k-mers, by an order of touching w that is kind to the cache.

Taken string by string, weighted degree features touch all of w, some 50 MB, for each string, and most touches miss the
cache. Here some thousand strings are taken at once and the loop over positions is the outer one: the tables of one
position (300 kB at degree 20 and 12 bits) stay in the L2 cache while all strings look up their k-mers in them. Strings
stand beside each other in the inner loops, letters transposed, so that these vectorise; nothing is written but the
sums, not even the indices.

Where k-mers are counted through, the tables of the short orders are summed up into one before the look-up:
fold[u] = sum over orders k of value_k * w_k[first k letters of u], and one look-up serves all of these orders. The
tables of a spectrum, which serve all positions, are summed up in the same way: the k-mers that end at a position are
the ends of one longest k-mer there.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel, prefetch
from dotadd.features.alphabet import FOREIGN
from dotadd.features.kmer_layout import LINE, SEED, finish, orders_on_a_line, position_stir, step, unpacked, within

STRIP = 2048  # strings whose running numbers stay in the L1 cache
FAR = 1 << 15  # slots of tables that are worth asking for ahead: those of 12 bits are not
FOLD = 1 << 14  # slots of the summed-up table, of 8 bytes
SHARED_FOLD = 1 << 16  # the same of tables that serve all positions, and are summed up once for all of them


@kernel
def transposed(letters, starts, ends, codes, first, reach):
    """The letters `first` to `reach` of all strings, as far as the longest has any, in the order of `_transpose`."""
    longest = np.int64(0)
    for j in range(len(starts)):
        longest = max(longest, ends[j] - starts[j])
    text = np.empty((max(min(longest, reach) - first, 0), len(starts)), np.uint16)
    _transpose(letters, starts, ends, codes, first, text)
    return text


@kernel
def dot_or_add(text, plan, first, w, numbers, adding):
    """DOT, numbers[j] += <w, phi(string j)>; or if `adding` ADD, w += sum_j numbers[j] phi(string j).

    w holds the tables of the positions from `first` on, as many as its length tells. String j is column j of the text,
    which begins at the first of these positions.
    """
    size, explicit, stride, bits, group, group_bits, offsets, values = unpacked(plan)
    degree = len(values) - 1
    last = first + len(w) // stride  # positions at which k-mers begin
    n, reach = text.shape[1], first + text.shape[0]
    folded, fold_size = 0, 1
    if not adding:
        while folded < explicit and fold_size * size <= min(FOLD, n):
            folded, fold_size = folded + 1, fold_size * size
    fold, spare = np.zeros(fold_size, np.float64), np.zeros(fold_size, np.float64)
    room = np.zeros(n, np.int32)  # letters from this position to the string's end or to the next foreign letter
    number = np.empty(n, np.uint32)
    slot = np.empty(n, np.uint32)
    slots = np.zeros((max(1, group), STRIP), np.uint32)
    for p in range(reach - 1, first - 1, -1):
        lowest, highest = _less_room(text[p - first], room)
        if p >= last:
            continue
        tables = w[(p - first) * stride : (p - first + 1) * stride]
        stir = np.uint32(position_stir(p, bits))
        number[:] = np.uint32(0)
        done = 0
        if folded and lowest >= folded:
            fold, spare = fold_tables(tables, values, offsets, size, folded, stir, fold, spare)
            for k in range(folded):
                _count(number, text[p - first + k], size)
            _look_up_fold(fold, number, numbers)
            done = folded
        for k in range(done + 1, min(explicit, highest) + 1):
            _count(number, text[p - first + k - 1], size)
            if values[k] != 0.0:
                for j in range(np.uint64(n)):
                    slot[j] = np.uint32(number[j] ^ stir)
                _touch(tables[offsets[k] :], slot, values[k], room, k, lowest, numbers, adding)
        if highest <= explicit:
            continue
        if explicit == 0:
            number[:] = np.uint32(SEED)
        below = w[max(0, p - 1 - first) * stride : (p - first) * stride]  # they are touched next
        _touch_hashed(
            tables, below, text[p - first :], values, explicit, min(degree, highest), offsets, bits, group, group_bits,
            number, slots, room, lowest, numbers, adding,
        )  # fmt: skip


@kernel
def squared_lengths(letters, starts, ends, codes, values, out):
    """out[j] = |phi(string j)|^2, the k-mers' values squared and summed; each is a feature of its own."""
    degree = len(values) - 1
    until = np.zeros(degree + 1)  # of a position after which so many letters follow, itself among them
    for k in range(1, degree + 1):
        until[k] = until[k - 1] + values[k] * values[k]
    for j in range(len(starts)):
        total, room = 0.0, 0
        for i in range(ends[j] - 1, starts[j] - 1, -1):
            room = 0 if codes[letters[i]] == np.uint16(FOREIGN) else min(room + 1, degree)
            total += until[room]
        out[j] = total


@inner
def _transpose(letters, starts, ends, codes, first, text):
    """text[p, j] = code of letter first + p of string j; foreign beyond its end.

    Some strings at a time, so that they stay in the L1 cache and whole cache lines are written.
    """
    width, n = text.shape
    for left in range(0, n, 64):
        right = min(left + 64, n)
        common = np.int64(width)
        for j in range(left, right):
            common = min(common, ends[j] - starts[j] - first)
        common = max(common, np.int64(0))
        for p in range(common):
            for j in range(left, right):
                text[p, j] = codes[letters[starts[j] + first + p]]
        for p in range(common, width):
            for j in range(left, right):
                inside = starts[j] + first + p < ends[j]
                text[p, j] = codes[letters[starts[j] + first + p]] if inside else np.uint16(FOREIGN)


@inner
def _less_room(letters, room):
    """One position further to the left: how many letters follow in each string, the least and the most of them."""
    lowest, highest = np.int32(0x7FFFFFFF), np.int32(0)
    for j in range(np.uint64(len(room))):
        now = np.int32(0) if letters[j] == np.uint16(FOREIGN) else np.int32(room[j] + 1)
        room[j] = now
        lowest, highest = min(lowest, now), max(highest, now)
    return lowest, highest


@inner
def fold_tables(tables, values, offsets, size, folded, stir, fold, spare):
    """The tables of orders 1..folded summed up into one of size**folded; the two buffers change places at each."""
    fold[0] = 0.0
    n = 1
    for k in range(1, folded + 1):
        table, value = tables[offsets[k] :], values[k]
        for u in range(n):
            above = fold[u]
            for c in range(size):
                spare[u * size + c] = above + value * np.float64(table[np.uint32(u * size + c) ^ stir])
        n *= size
        fold, spare = spare, fold
    return fold, spare


@inner
def _count(number, letters, size):
    for j in range(np.uint64(len(number))):
        number[j] = np.uint32(np.uint32(number[j] * np.uint32(size)) + np.uint32(letters[j]))


@inner
def _look_up_fold(fold, number, sums):
    for j in range(np.uint64(len(number))):
        sums[j] += fold[number[j]]


@inner
def _touch(table, slot, value, room, k, lowest, numbers, adding):
    """DOT or ADD of one order: for string j the slot slot[j], provided that its k-mer fits."""
    n = np.uint64(len(numbers))
    if adding:
        for j in range(n):
            if room[j] >= k:
                table[slot[j]] += value * numbers[j]
    elif k <= lowest:
        for j in range(n):
            numbers[j] += value * np.float64(table[slot[j]])
    else:
        for j in range(n):
            if room[j] >= k:
                numbers[j] += value * np.float64(table[slot[j]])


@inner
def _touch_hashed(
    tables, below, text, values, explicit, orders, offsets, bits, group, group_bits,
    number, slots, room, lowest, numbers, adding,
):  # fmt: skip
    """The orders beyond `explicit`, laid out in groups as in kmer_layout.py.

    A group's tables stay in the L2 cache while all strings pass, strip by strip, whose numbers stay in the L1 cache.
    Large tables that come next are asked for meanwhile, if strings are so many that they touch most lines of them.
    """
    degree, n = len(values) - 1, len(number)
    k = explicit + 1
    while k <= orders:
        together = orders_on_a_line(group, degree - k + 1)
        table = tables[offsets[k] :]
        following = k + together
        if following <= orders:
            ahead = tables[offsets[following] : _end_of_group(following, degree, bits, group, offsets)]
        else:  # with the longest order that is counted
            ahead = below[offsets[explicit] : _end_of_group(explicit + 1, degree, bits, group, offsets)]
        lines = len(ahead) // LINE
        if len(ahead) < FAR or 2 * lines > n:
            lines = 0
        for left in range(0, n, STRIP):
            strip = number[left : left + STRIP]
            wanted = ahead[left * lines // n * LINE : (left + len(strip)) * lines // n * LINE]
            m = np.uint64(len(strip))
            here, sums = room[left : left + STRIP], numbers[left : left + STRIP]
            count = min(together, orders + 1 - k)
            for later in range(count):
                letters = text[k + later - 1, left : left + STRIP]
                step(strip, letters, np.uint64(0), m)
                if later == 0:
                    finish(strip, bits, together, group_bits, m, slots[0])
                elif values[k + later] != 0.0:
                    _continue(slots[0], strip, letters, np.uint64(later), group_bits, slots[later])
            if count == 4 and not adding and k + 3 <= lowest:
                _look_up_four(table, slots, values[k : k + 4], sums, wanted)
                continue
            for line in range(0, len(wanted), LINE):  # before four loops, which is worth less than between look-ups
                prefetch(wanted, np.int64(line))
            for later in range(count):
                if values[k + later] != 0.0:
                    _touch(table, slots[later], values[k + later], here, k + later, lowest, sums, adding)
        k += together


@inner
def _end_of_group(k, degree, bits, group, offsets):
    """Where the tables of a group end that begins with order k."""
    return offsets[k] + (np.uint64(orders_on_a_line(group, degree - k + 1)) << np.uint64(bits))


@inner
def _continue(line, number, letters, later, group_bits, slot):
    for j in range(np.uint64(len(number))):
        slot[j] = within(line[j], number[j], letters[j], later, group_bits)


@inner
def _look_up_four(table, slots, values, sums, ahead):
    """DOT of four orders, which lie on one cache line; an order of value 0 may have anything for a slot. The lines
    ahead are asked for one after the other between the look-ups: all at once, they would hold these up."""
    first, second, third, fourth = slots[0], slots[1], slots[2], slots[3]
    a, b, c, d = values[0], values[1], values[2], values[3]
    n = len(sums)
    step, line = max(1, n // max(1, len(ahead) // LINE)), np.int64(0)
    for begin in range(0, n, step):
        if line < len(ahead):
            prefetch(ahead, line)
            line += LINE
        for j in range(np.uint64(begin), np.uint64(min(begin + step, n))):
            low = a * np.float64(table[first[j]]) + b * np.float64(table[second[j]])
            sums[j] += low + (c * np.float64(table[third[j]]) + d * np.float64(table[fourth[j]]))


@kernel
def shared_dot(letters, starts, ends, codes, plan, w, out):
    """out[j] += <w, phi(letters[starts[j]:ends[j]])>, where all positions have one table of counted k-mers an order."""
    size, _, _, _, _, _, offsets, values = unpacked(plan)
    orders = len(values) - 1
    if not values[:orders].any():
        _dot_of_longest(letters, starts, ends, codes, size, orders, values[orders], w[offsets[orders] :], out)
        return
    folded, fold_size = 0, 1
    while folded < orders and fold_size * size <= min(SHARED_FOLD, 4 * len(starts)):
        folded, fold_size = folded + 1, fold_size * size
    fold = _fold_shared(w, values, offsets, size, folded, fold_size)
    power, mask = powers(size, orders)
    for j in range(len(starts)):
        total = 0.0
        code, room = np.uint64(0), 0
        for i in range(np.uint64(starts[j]), np.uint64(ends[j])):
            letter = codes[letters[i]]
            room = 0 if letter == np.uint16(FOREIGN) else min(room + 1, orders)
            code = tail(code, power, mask, orders - 1) * np.uint64(size) + np.uint64(letter)
            done = 0
            if room >= folded:
                total += fold[tail(code, power, mask, folded)]
                done = folded
            for k in range(done + 1, room + 1):
                total += values[k] * np.float64(w[offsets[k] + tail(code, power, mask, k)])
        out[j] += total


@inner
def _dot_of_longest(letters, starts, ends, codes, size, order, value, w, out):
    """The same where one order has features: a look-up a letter, and no remainders."""
    first = np.uint64(size) ** np.uint64(order - 1)  # what the first letter of a k-mer counts
    for j in range(len(starts)):
        total = 0.0
        code, room = np.uint64(0), 0
        for i in range(np.uint64(starts[j]), np.uint64(ends[j])):
            letter = codes[letters[i]]
            if letter == np.uint16(FOREIGN):
                code, room = np.uint64(0), 0
                continue
            if room == order:
                code -= np.uint64(codes[letters[i - np.uint64(order)]]) * first
            else:
                room += 1
            code = code * np.uint64(size) + np.uint64(letter)
            if room == order:
                total += np.float64(w[code])
        out[j] += value * total


@kernel
def shared_lengths(letters, starts, ends, codes, plan, dim, out):
    """out[j] = |phi(letters[starts[j]:ends[j]])|^2: each occurrence of a k-mer seen c times before adds 2 c + 1.

    Each slot holds in its upper half which string has counted there last, so that none has to clear up behind itself.
    Strings have to be shorter than 2**16 letters.
    """
    size, _, _, _, _, _, offsets, values = unpacked(plan)
    orders = len(values) - 1
    power, mask = powers(size, orders)
    seen = np.zeros(dim, np.uint32)
    longest = np.int64(0)
    for j in range(len(starts)):
        longest = max(longest, ends[j] - starts[j])
    code, room = np.empty(longest, np.uint64), np.empty(longest, np.int32)
    low = np.uint32(0xFFFF)
    stamp = np.uint32(0)
    for j in range(len(starts)):
        stamp += np.uint32(1)
        if stamp > low:
            seen[:] = np.uint32(0)
            stamp = np.uint32(1)
        high = np.uint32(stamp << np.uint32(16))
        n = np.uint64(ends[j] - starts[j])
        _read(letters, np.uint64(starts[j]), codes, size, orders, power, mask, code[:n], room[:n])
        total = 0.0
        for k in range(1, orders + 1):
            if values[k] == 0.0:  # such an order may have no table of its own
                continue
            table = seen[offsets[k] :]
            squares = np.int64(0)
            for i in range(np.uint64(k - 1), n):
                if room[i] >= k:
                    slot = tail(code[i], power, mask, k)
                    before = table[slot]
                    count = np.uint32(before & low) if before >= high else np.uint32(0)
                    table[slot] = np.uint32(high | np.uint32(count + np.uint32(1)))
                    squares += np.int64(2) * np.int64(count) + np.int64(1)
            total += values[k] * values[k] * np.float64(squares)
        out[j] = total


@inner
def _read(letters, first, codes, size, orders, power, mask, code, room):
    """The number of the last letters at each position, and how many of them count."""
    now, have = np.uint64(0), np.int32(0)
    for i in range(np.uint64(len(code))):
        letter = codes[letters[first + i]]
        have = np.int32(0) if letter == np.uint16(FOREIGN) else np.int32(min(have + 1, orders))
        now = tail(now, power, mask, orders - 1) * np.uint64(size) + np.uint64(letter)
        code[i], room[i] = now, have


@inner
def powers(size, orders):
    """size**k for each order, and whether these are powers of two, so that a remainder is a mask."""
    power = np.ones(orders + 1, np.uint64)
    for k in range(1, orders + 1):
        power[k] = power[k - 1] * np.uint64(size)
    return power, (size & (size - 1)) == 0


@inner
def tail(code, power, mask, k):
    """The number of the last k letters."""
    return code & (power[k] - np.uint64(1)) if mask else code % power[k]


@inner
def _fold_shared(w, values, offsets, size, folded, fold_size):
    fold = np.zeros(fold_size, np.float64)
    n = 1
    for k in range(1, folded + 1):
        # from the last on, so that the shorter k-mers' sums are read before they are overwritten
        for u in range(n * size - 1, -1, -1):
            fold[u] = fold[u % n] + values[k] * np.float64(w[offsets[k] + np.uint64(u)])
        n *= size
    return fold
