"""Several classes: a binary problem for each two of them, on all cores.

Every class meets every other one in an order in which neighbouring pairs have no class in common (a tournament), so
that they can be solved at the same time. The pairs of one class are solved in this order, one after the other: so what
a pair finds of kept kernel values (`shared_rows.py`) does not depend on how many threads there are, nor does an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from threading import Condition, Lock
from time import perf_counter
from typing import NamedTuple, Self

import numpy as np

from dotadd._util.threads import for_each, one_blas_thread
from dotadd.kernel_svm.gram import Gram
from dotadd.kernel_svm.problem import KernelProblem, KernelProgress, KernelResult, KernelSettings, answer
from dotadd.kernel_svm.shared_rows import WHOLE, PairGram, SharedRows, WholeGram
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.result import Reason

TINY = 600  # examples of two classes

Pair = tuple[int, int]
Solve = Callable[[KernelProblem, KernelSettings], KernelResult]
OnProgress = Callable[[KernelProgress, int, int], None]


def pairs(classes: int) -> Iterator[Pair]:
    """The pairs of classes that are told apart, in LIBSVM's order."""
    return ((i, j) for i in range(classes) for j in range(i + 1, classes))


def tournament(classes: int) -> list[Pair]:
    """The same pairs in rounds, in each of which a class is in one pair at most."""
    odd = classes - 1 + classes % 2  # where there is one class more, it meets the one that would meet itself

    def turn(pair: Pair) -> tuple[int, Pair]:
        i, j = pair
        return (i + (j if j < odd else i) - 1) % odd, pair

    return sorted(pairs(classes), key=turn)


class PairShares(NamedTuple):
    """How the bytes for kernel values are shared out. It depends on the number of threads in `at_once` alone."""

    full: bool
    """Whether the matrix of all examples is made first: where classes are tiny, blocks would be mostly overhead."""
    whole: bool
    """Whether blocks of classes are made whole."""
    within: int
    """For blocks within the classes."""
    pair: int
    """For one pair, half of it for what lies between the two classes and half for its solver."""
    at_once: int
    """Pairs that are solved at the same time."""

    @classmethod
    def of(cls, sizes: Sequence[int], memory: int, threads: int) -> Self:
        """For classes of these sizes."""
        largest, everyone = sum(sorted(sizes)[-2:]), 4 * sum(sizes) ** 2
        within, pair = 4 * sum(size * size for size in sizes), 8 * largest * largest
        whole = largest <= WHOLE and within + pair <= memory
        full = whole and largest <= TINY and everyone + within + pair <= memory
        memory -= everyone if full else 0
        if not whole:
            within, pair = min(within, memory // 2), max(1, min(pair, memory // 4))
        return cls(full, whole, within, pair, max(1, min(threads, len(sizes) // 2, (memory - within) // pair)))


class OneAgainstOne:
    """All pairs of classes of the rows of a square Gram, in which the rows of a class stand together.

    classes: where each class begins, and the end of the last one
    settings: of each binary problem; memory, time and whom to tell (not asked here) are for all of them together
    """

    def __init__(
        self,
        gram: Gram,
        classes: np.ndarray,
        cost: np.ndarray,
        solve: Solve,
        settings: KernelSettings,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.gram, self.cost, self.solve, self.settings, self.on_progress = gram, cost, solve, settings, on_progress
        self.classes = [(int(first), int(stop)) for first, stop in pairwise(classes)]
        sizes = [stop - first for first, stop in self.classes]
        self.shares = PairShares.of(sizes, settings.memory, settings.threads)
        self.within: list[SharedRows] = []
        self.number = {pair: k for k, pair in enumerate(pairs(len(sizes)))}
        self.results: dict[Pair, KernelResult] = {}
        self._begun, self._telling = 0, Lock()
        self._spare: list[np.ndarray] = []
        self._clock = Clock(settings.max_time)

    def solved(self) -> list[KernelResult]:
        """The answers in the order of `pairs`, each with alpha of the first class and then of the second; those that
        were not begun when time was up have alpha 0."""
        self.gram.diagonal()  # what is prepared when it is first asked for is so before threads ask
        order, at_once = tournament(len(self.classes)), self.shares.at_once
        with self._clock, one_blas_thread():
            try:
                self._prepare()
            except StoppedError as stopped:
                for pair in order:
                    self.results[pair] = self._nothing(pair, stopped.reason)
            else:
                in_turns(order, self._solve, at_once)
        return [self.results[pair] for pair in self.number]

    def _prepare(self) -> None:
        """Make what pairs share from the beginning."""
        check, squares = self._clock.peek, [(stop - first) ** 2 for first, stop in self.classes]
        gram = WholeGram.of(self.gram, check) if self.shares.full else self.gram
        for one, square in zip(self.classes, squares, strict=True):
            self.within.append(SharedRows(gram, one, one, self.shares.within * square // max(1, sum(squares))))
        if self.shares.whole:
            largest_first = sorted(self.within, key=lambda one: -one.shape[0])
            for_each(largest_first, lambda one: one.make_whole(check), self.shares.at_once)

    def _solve(self, pair: Pair) -> None:
        alone = self.shares.at_once == 1  # Ctrl-C arrives in this thread, then
        try:
            if self._begun:
                (self._clock.check if alone else self._clock.peek)()
            left = -(-(len(self.number) - self._begun) // self.shares.at_once)
            self._begun += 1
            limit = self._clock.share(left).left()
            clock = None if alone else HelpersClock(self._clock, limit)
            settings = replace(
                self.settings,
                memory=self.shares.pair // 2,
                max_time=limit,
                clock=clock,
                on_progress=self._told(self.number[pair]),
            )
            began = perf_counter()
            memory = self._matrix() if self.shares.whole else None
            gram = self._gram(pair, memory)
            made = perf_counter() - began
            found = self.solve(KernelProblem(gram, self._sign(pair), self._costs(pair)), settings)
            if memory is not None:
                self._spare.append(memory)
            seconds = {**found.seconds, "matrix": found.seconds.get("matrix", 0.0) + made}
            self.results[pair] = replace(found, seconds=seconds)
        except StoppedError as stopped:
            self.results[pair] = self._nothing(pair, stopped.reason)

    def _matrix(self) -> np.ndarray:
        """Memory for the matrix of a pair, used again and again: new pages cost as much as what is written to them."""
        return self._spare.pop() if self._spare else np.empty(self.shares.pair // 8, np.float32)

    def _gram(self, pair: Pair, memory: np.ndarray | None) -> Gram:
        within = self.within[pair[0]], self.within[pair[1]]
        if memory is None:
            return PairGram(within, self.shares.pair // 2)
        return WholeGram.of_pair(within, memory, self._clock.peek)

    def _sign(self, pair: Pair) -> np.ndarray:
        one, two = (np.diff(self.classes[k])[0] for k in pair)
        return np.repeat(np.array([1, -1], np.int8), [one, two])

    def _costs(self, pair: Pair) -> np.ndarray:
        return np.concatenate([self.cost[slice(*self.classes[k])] for k in pair])

    def _nothing(self, pair: Pair, reason: Reason) -> KernelResult:
        """The answer to a problem that was not begun."""
        sign = self._sign(pair)
        zero = np.zeros(len(sign))
        return answer(getattr(self.solve, "name", ""), reason, zero, sign, self._costs(pair), zero)

    def _told(self, k: int) -> Callable[[KernelProgress], None] | None:
        """Tells of binary problem k, if anybody listens: one thread at a time."""
        listener = self.on_progress
        if listener is None:
            return None

        def tell(progress: KernelProgress) -> None:
            with self._telling:
                listener(progress, k, len(self.number))

        return tell


def in_turns(order: Sequence[Pair], work: Callable[[Pair], None], threads: int) -> None:
    """work(pair) for each pair on so many threads: no two that share a class at the same time, and those that do in
    this order."""
    waiting, busy, change = list(order), list[Pair](), Condition()

    def next_one() -> Pair | None:
        taken = {one for pair in busy for one in pair}
        for pair in waiting:
            if taken.isdisjoint(pair):
                return pair
            taken.update(pair)
        return None

    def share(_: int) -> None:
        while True:
            with change:
                while (pair := next_one()) is None and waiting:
                    change.wait()
                if pair is None:
                    return
                waiting.remove(pair)
                busy.append(pair)
            try:
                work(pair)
            except BaseException:
                waiting.clear()
                raise
            finally:
                with change:
                    busy.remove(pair)
                    change.notify_all()

    for_each(range(threads), share, threads)


class HelpersClock(Clock):
    """A clock for threads that solve one pair each: Ctrl-C ends all of them, and is left to the thread that asked them
    to. No product that they wait for takes long."""

    def __init__(self, whole: Clock, max_time: float | None) -> None:
        super().__init__(max_time)
        self._whole = whole

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def obey(self) -> None:
        if self._whole.interrupted:
            raise StoppedError(Reason.INTERRUPTED)

    def tell(self, whom: Callable[..., None] | None, *what: object) -> None:
        self._whole.tell(whom, *what)

    @contextmanager
    def anywhere(self) -> Iterator[None]:
        yield

    proof = anywhere
