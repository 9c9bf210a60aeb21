"""Two threads at one binary problem whose rows are long: each has a half of w and the non-zeros that belong there.

Both walk the same rows in the same order. The one that leads takes all steps: it adds the partner's part of a DOT to
its own, decides, and tells the partner by how much to ADD. So nothing is written by two, the iterates are those of one
thread, and each core has a half of w in its cache. Where the partner is not there, the leader does both halves itself,
with the same bits: sums are always taken as half and half.

Nobody waits long for a thread that has no core. The partner says that it is there by an echo to each row that the
leader does alone; when it has echoed enough of them without delay, they go on together, until a wait takes longer than
any exchange does. Then the leader goes on alone, and wants to hear more echoes each time. All that passes between
them is in one array, `talk`, the words of the leader and of the partner in different lines of the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dotadd._jit import inner, kernel, prefetch
from dotadd._jit.waiting import CAN_WAIT, give_way, load, pause, store, swap
from dotadd._util.threads import beside
from dotadd.core.block import Block, row_add, row_dot

STATE, FIRST, BASE, NEED, STREAK, SPINS = range(6)
DONE, COEFFICIENT, LEAVE, PULSE = range(16, 20)  # of the leader: the last row that it has decided, and what
SUMMED, SUM, ECHO = range(32, 35)  # of the partner: the last row that it has a sum of, and the sum
N_WORDS = 48
NOBODY, HERE, TOGETHER, OVER = range(4)

MOST_SPINS = 2000.0  # some 50 microseconds, a hundred times what an exchange takes: whom one waits for has no core
PATIENCE = 1 << 20  # spins of a partner whom nobody calls
LEAST_NEED, MOST_NEED = 32.0, 1e6  # rows to be echoed before both go on together
GOOD = 1 << 10  # rows that went well, after which a half of the echoes will do
LEAST_MEAN = 512.0  # non-zeros of a row: less than that, and an exchange takes longer than it saves
BALANCED = 0.4  # of the non-zeros that each half has at least


def new_talk() -> np.ndarray:
    """Words that leader and partner talk by, which begin where a line of the cache does."""
    words = np.zeros(N_WORDS + 16)
    first = -words.ctypes.data % 128 // 8
    talk = words[first : first + N_WORDS]
    talk[NEED], talk[SPINS] = LEAST_NEED, MOST_SPINS
    return talk


def worth_it(block: Block, order: np.ndarray) -> bool:
    """Whether a partner would help with these rows."""
    if block.mid is None or not len(order) or not CAN_WAIT:
        return False
    whole = float((block.end[order] - block.start[order]).sum())
    second = float((block.end[order] - block.mid[order]).sum())
    return whole >= LEAST_MEAN * len(order) and BALANCED * whole <= second <= (1.0 - BALANCED) * whole


@contextmanager
def partner(block: Block, order: np.ndarray, active: np.ndarray, w: np.ndarray, talk: np.ndarray) -> Iterator[None]:
    """Another thread that helps with a sweep over these rows, as far as there is one."""
    words = talk.view(np.int64)
    words[STATE], words[DONE], words[SUMMED] = NOBODY, 0, 0
    talk[FIRST] = -1.0

    def help_out() -> None:
        try:
            follow(block.start, block.mid, block.end, block.indices, block.values, order, active, w, talk)
        except BaseException:  # which comes to the leader afterwards, who must not wait for the rest
            words[STATE] = OVER
            raise

    helping = beside(help_out)
    try:
        yield
    finally:
        words[STATE] = OVER
        if helping is not None and not helping.cancel():
            helping.result()


@inner
def are_together(talk):
    """Whether the two have been so since the rows before these."""
    return load(talk, STATE) == TOGETHER


@inner
def join(talk, row):
    """Whether from this row on the partner does its half."""
    if load(talk, STATE) != HERE:
        return False
    talk[STREAK] = talk[STREAK] + 1.0 if load(talk, ECHO) == load(talk, PULSE) else 0.0
    store(talk, PULSE, row + 1)
    if talk[STREAK] < talk[NEED]:
        return False
    talk[FIRST], talk[STREAK], talk[LEAVE] = row, 0.0, 0.0
    return swap(talk, STATE, HERE, TOGETHER)


@inner
def say_sum(talk, row, total):
    """The second part of the DOT of a row, whoever has made it."""
    talk[SUM] = total
    store(talk, SUMMED, row + 1)


@inner
def hear_sum(talk, row, together):
    """Wait for that; if it takes so long that the partner has no core, it will be asked to leave."""
    spins = 0
    while load(talk, SUMMED) != row + 1:
        pause()
        spins += 1
        if spins > talk[SPINS]:
            give_way()
            if load(talk, STATE) == OVER:
                break
    if spins > talk[SPINS]:
        talk[LEAVE], talk[STREAK] = 1.0, 0.0
        talk[NEED] = min(4.0 * talk[NEED], MOST_NEED)
    elif together:
        talk[STREAK] += 1.0
        if talk[STREAK] >= GOOD:
            talk[STREAK], talk[NEED] = 0.0, max(0.5 * talk[NEED], LEAST_NEED)
    return talk[SUM]


@inner
def say_coefficient(talk, row, coefficient):
    """By how much the row is to be added to w."""
    talk[COEFFICIENT] = coefficient
    store(talk, DONE, row + 1)


@inner
def stay_together(talk):
    """After a row: whether the two do the next one together. One that was asked to leave has its ADD to finish."""
    if talk[LEAVE] == 0.0:
        return True
    while load(talk, STATE) == TOGETHER:
        pause()
        give_way()
    return False


@inner
def _called(talk, never):
    """Wait for the leader; returns the first row to be done together."""
    spins = 0
    while load(talk, STATE) != TOGETHER:
        if load(talk, STATE) == OVER or (spins > PATIENCE and swap(talk, STATE, HERE, OVER)):
            return never
        store(talk, ECHO, load(talk, PULSE))
        pause()
        spins += 1
        if spins > talk[SPINS]:
            give_way()
    return np.int64(talk[FIRST])


@kernel
def follow(start, mid, end, indices, values, rows, active, w, talk):
    """What the partner does of a sweep over these rows."""
    if not swap(talk, STATE, NOBODY, HERE):
        return
    n = np.int64(len(rows))
    row = _called(talk, n)
    while row < n:
        if row + 2 < n:
            near = np.uint64(rows[row + 2])
            first = np.uint64(mid[near])
            for k in range(first, min(np.uint64(end[near]), first + np.uint64(128)), np.uint64(16)):
                prefetch(indices, k)
                prefetch(values, k)
        i = np.uint64(rows[row])
        if active[i] != 0:
            say_sum(talk, row, row_dot(indices, values, mid[i], end[i], w))
            spins = 0
            while load(talk, DONE) != row + 1:
                pause()
                spins += 1
                if spins > talk[SPINS]:
                    give_way()
                    if load(talk, STATE) == OVER and load(talk, DONE) != row + 1:
                        return
            leaves = talk[LEAVE] != 0.0
            if talk[COEFFICIENT] != 0.0:
                row_add(indices, values, mid[i], end[i], w.dtype.type(talk[COEFFICIENT]), w)
            if leaves:
                swap(talk, STATE, TOGETHER, HERE)  # unless all is over
                row = _called(talk, n)
                continue
        row += 1
