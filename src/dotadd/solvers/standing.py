"""Standing: how far StreamSVM has come, in numbers that a checkpoint can write down.

A pass is the reader's, over all examples; a round is the trainer's, over those in memory. Both sum up the gap: each
example's share when it was last looked at. A row is counted with the pass while it passes by, and with the rounds
while it is in memory.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields

import numpy as np

from dotadd.solvers.result import Progress
from dotadd.solvers.saving import State
from dotadd.solvers.stretch import FACTORS, best_factor
from dotadd.solvers.sweep import PG_MAX, PG_MIN

TIGHTEN = 0.9  # eps, at each round while memory is nearly full
NEARER = 0.9  # times as low, beside what was missed, is the estimate of the gap at which to prove it again
SEVERAL = 0.5  # of the problems that are not proved yet
STILL = 1e-4  # M+ - M-: nothing would move any more


@dataclass
class Standing:
    """Lists have an entry for each of the binary problems."""

    passes: int = 0
    position: int = 0  # rows of this pass that have arrived
    step: float = 0.0  # what the constant feature adds to |phi|^2, or the weight of the multiplier of a free intercept
    tol: float = 0.0  # as it was asked for
    target: float = 0.0  # estimate of the gap at which to prove it
    still: float = STILL
    proved: list[bool] = field(default_factory=list)
    eps: list[float] = field(default_factory=list)
    worst: list[float] = field(default_factory=list)  # projected gradient of this round
    round_rows: int = 0
    round_gap: list[float] = field(default_factory=list)  # of this round so far
    last_gap: list[float] = field(default_factory=list)  # of the round before
    new_gap: list[float] = field(default_factory=list)  # of rows that came since
    highest: list[float] = field(default_factory=list)  # projected gradient of this pass, M+
    lowest: list[float] = field(default_factory=list)  # M-
    arrived: list[list[float]] = field(default_factory=list)  # gap of each piece of this pass
    before: list[list[float]] = field(default_factory=list)  # and of the pass before
    local: list[list[float]] = field(default_factory=list)  # gap of all rows of this pass, with each of FACTORS
    stretch: list[float] = field(default_factory=list)  # the best of them
    left: list[float] = field(default_factory=list)  # what share of the gap is left with it
    trace: list[list[Progress]] = field(default_factory=list)

    @classmethod
    def at_the_start(cls, problems: int, tol: float) -> Standing:
        def nothing() -> list[float]:
            return [0.0] * problems

        at = cls(
            tol=tol, target=tol, proved=[False] * problems, eps=[np.inf] * problems, worst=nothing(),
            round_gap=nothing(), last_gap=nothing(), new_gap=nothing(), stretch=[1.0] * problems, left=[1.0] * problems,
            before=[[] for _ in range(problems)], trace=[[] for _ in range(problems)],
        )  # fmt: skip
        at.begin_pass()
        return at

    def record(self) -> State:
        """What is told to JSON."""
        return asdict(self)

    @classmethod
    def of_record(cls, record: State, tol: float) -> Standing:
        """What was told to JSON; training goes on to this tolerance."""
        known = {each.name: record[each.name] for each in fields(cls) if each.name in record}
        count = len(record["eps"])
        new: State = {"proved": [False] * count, "stretch": [1.0] * count, "left": [1.0] * count}
        at = cls(**new | {"local": [[0.0] * len(FACTORS)] * count} | known)  # which earlier versions did not tell
        if at.tol != tol:
            at.tol = at.target = tol
            at.still, at.proved = STILL, [False] * len(at.eps)
        at.trace = [[Progress(*row) for row in rows] for rows in at.trace]
        return at

    def begin_pass(self) -> None:
        problems = len(self.eps)
        self.position = 0
        self.highest, self.lowest = [0.0] * problems, [0.0] * problems
        self.arrived = [[] for _ in range(problems)]
        self.local = [[0.0] * len(FACTORS) for _ in range(problems)]

    def end_pass(self) -> None:
        self.passes += 1
        self.before = self.arrived

    def saw(self, k: int, gaps: np.ndarray) -> None:
        """Some rows were looked at, which have these `local_gaps`."""
        self.local[k] = [before + gap for before, gap in zip(self.local[k], gaps.tolist(), strict=True)]

    def choose_stretch(self, k: int, half: float) -> None:
        """All rows of this pass were looked at; `half` is |w|^2 / 2 with what belongs to the intercept."""
        self.stretch[k], self.left[k] = best_factor(np.array(self.local[k]), half)

    def begin_round(self, rows: int) -> None:
        self.round_rows = rows
        for k in range(len(self.eps)):
            self.round_gap[k] = self.new_gap[k] = self.worst[k] = 0.0

    def visited(self, k: int, numbers: np.ndarray) -> None:
        """Some rows were visited, and these were the largest projected gradients."""
        self.highest[k] = max(self.highest[k], float(numbers[PG_MAX]))
        self.lowest[k] = min(self.lowest[k], float(numbers[PG_MIN]))

    def visited_in_round(self, k: int, numbers: np.ndarray, gap: float) -> None:
        """Some rows in memory were visited, and this was their share of the gap."""
        self.round_gap[k] += gap
        self.worst[k] = max(self.worst[k], float(numbers[PG_MAX]), -float(numbers[PG_MIN]))

    def end_round(self, *, full: bool) -> None:
        self.last_gap = self.round_gap[:]
        self.round_rows = 0
        self.eps = [worst * (TIGHTEN if full else 1.0) for worst in self.worst]

    def gap(self, k: int, left: int) -> float:
        """The estimate of the gap that the best multiple of w has, when so many rows in memory are still to be visited
        in this round."""
        return self.left[k] * (self.passing(k) + self.kept(k, left))

    def passing(self, k: int) -> float:
        """The share of the rows that pass by, as far as they were seen."""
        arrived = self.arrived[k]
        return sum(arrived) + sum(self.before[k][len(arrived) :])

    def kept(self, k: int, left: int) -> float:
        """The share of the rows in memory, of which so many are still to be visited in this round."""
        if not self.round_rows:
            return self.new_gap[k] + self.last_gap[k]
        return self.new_gap[k] + self.round_gap[k] + left / self.round_rows * self.last_gap[k]

    @property
    def ready(self) -> list[int]:
        """The problems that look as if they were solved, after a pass, and are not proved yet."""
        standing = zip(self.trace, self.highest, self.lowest, self.proved, strict=True)
        return [
            k
            for k, (rows, high, low, proved) in enumerate(standing)
            if not proved and (rows[-1].gap <= self.target or high - low <= self.still)
        ]

    @property
    def calls_for_proof(self) -> bool:
        """Whether enough of them do to be worth a reading."""
        return len(self.ready) >= SEVERAL * self.proved.count(False)

    def not_proved(self, gap: float) -> None:
        """The true gap was larger than hoped: look again when the estimate is better."""
        self.target *= max(0.1, NEARER * min(1.0, self.tol / gap))
        self.still *= 0.1
