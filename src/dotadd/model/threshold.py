"""A threshold for a purpose: which score is high enough, chosen on scores of rows that training has not seen.

A purpose is "precision=0.99" (as many of the second class as can be found while 99 % of what is found is of it),
"recall=0.9" (the highest threshold that finds 90 %), "fpr=1e-4" (as many as can be found while one of 10,000 of the
first class is taken for the second) or what mistakes cost: "fp=5,fn=1", or the matrix cost[truth][prediction]. Among
thresholds that serve it equally well, the highest is taken. It lies in the middle between two scores, where rounding
cannot reach it.

`measures` say what it achieves on rows like those that it was chosen on, with exact binomial intervals (for mean costs,
normal ones). They do not account for the choice having been made on the same rows. Thresholds are for two classes:
several are told apart by the largest of their scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dotadd.errors import DotaddError, ModelError, as_written
from dotadd.model.intervals import Interval, mean, proportion
from dotadd.model.probability import held_out

SHARES = ("precision", "recall", "fpr")
COSTS = ("tn", "fp", "fn", "tp")
ROUNDING = 1e-12
Purposeful = str | Mapping[str, float] | Sequence[Sequence[float]] | np.ndarray  # what says what a threshold is for


@dataclass(frozen=True)
class Threshold:
    """Scores above `value` are of the second class. `measures` tell what that achieves on so many rows, for the
    `purpose` that it was chosen for."""

    value: float
    purpose: str = "given"
    rows: int = 0
    measures: Mapping[str, Interval] = field(default_factory=dict)

    def __str__(self) -> str:
        told = ", ".join(f"{name} {found}" for name, found in self.measures.items())
        return f"{self.value:.6g}" + (f" for {self.purpose}: {told} on {self.rows:,} held-out rows" if told else "")

    def to_dict(self) -> dict[str, object]:
        """What a model file keeps."""
        measures = {name: list(found) for name, found in self.measures.items()}
        return {"value": self.value, "purpose": self.purpose, "rows": self.rows, "measures": measures}

    @classmethod
    def from_dict(cls, record: Mapping[str, object]) -> Threshold:
        """The same again."""
        value, rows, measures = record["value"], record["rows"], record["measures"]
        if not isinstance(value, float | int) or not np.isfinite(value) or not isinstance(rows, int):
            raise ModelError(f"a threshold of {value!r}")
        if not isinstance(measures, Mapping):
            raise ModelError("measures of a threshold that are none")
        found = {str(name): Interval(*(np.nan if x is None else float(x) for x in m)) for name, m in measures.items()}
        return cls(float(value), str(record["purpose"]), rows, found)


@dataclass(frozen=True)
class Purpose:
    """What a threshold is for: a share that is to be reached, or costs of [[tn, fp], [fn, tp]]."""

    name: str
    share: float = 0.0
    costs: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def __str__(self) -> str:
        if self.name != "cost":
            return f"{self.name}={self.share:g}"
        return ",".join(f"{name}={cost:g}" for name, cost in zip(COSTS, self.costs, strict=True) if cost)

    @classmethod
    def of(cls, given: Purposeful) -> Purpose:
        """The purpose that text, names with numbers or a matrix of costs describe."""
        hint = "give precision=, recall= or fpr= and a share, or costs of mistakes such as fp=5,fn=1"
        if isinstance(given, str):
            pairs = [part.partition("=") for part in given.split(",")]
            named: Mapping[str, str | float] = {name.strip(): number for name, _, number in pairs}
            if len(named) < len(pairs):
                raise DotaddError(f"threshold {given!r} says something twice")
        elif isinstance(given, Mapping):
            named = given
        else:
            matrix = np.asarray(given)
            if matrix.shape != (2, 2):
                raise DotaddError(f"costs of shape {matrix.shape}: give cost[truth][prediction] of two classes")
            named = dict(zip(COSTS, matrix.ravel().tolist(), strict=True))
        numbers = {}
        for name, number in named.items():
            try:
                numbers[name] = float(number)
            except (TypeError, ValueError):
                raise DotaddError(f"threshold {given!r}: {number!r} is no number; {hint}") from None
        if set(numbers) <= set(COSTS):
            return cls._of_costs(numbers)
        (name, share), *more = numbers.items()
        if more or name not in SHARES:
            raise DotaddError(f"threshold {given!r}: {hint}")
        if not (0.0 <= share <= 1.0 and (share > 0.0 or name == "fpr")):
            raise DotaddError(f"threshold {given!r}: {name} is a share of rows, between 0 and 1")
        return cls(name, share)

    @classmethod
    def _of_costs(cls, given: Mapping[str, float]) -> Purpose:
        tn, fp, fn, tp = costs = tuple(given.get(name, 0.0) for name in COSTS)
        if not np.isfinite(costs).all() or min(costs) < 0.0 or not (fp > tn and fn > tp):
            told = ", ".join(f"{name} {cost:g}" for name, cost in zip(COSTS, costs, strict=True))
            raise DotaddError(f"costs {told}: fp and fn have to cost more than tn and tp, and none less than 0")
        return cls("cost", costs=(tn, fp, fn, tp))


def choose_threshold(
    scores: np.ndarray,
    y: Sequence[object] | np.ndarray,
    classes: Sequence[object] | np.ndarray,
    purpose: Purposeful,
    *,
    weight: np.ndarray | None = None,
) -> Threshold:
    """The threshold for a purpose, on scores of rows that training has not seen, as `calibrate` takes them. The answer
    is kept as `model.threshold`."""
    wanted = Purpose.of(purpose)
    if len(classes) != 2:
        raise DotaddError(f"a threshold tells two classes apart, and there are {len(classes)}")
    table, labels, each = held_out(scores, y, classes, weight)
    used = each > 0.0
    score, positive, each = table[used, 0], labels[used] == classes[1], each[used]
    if not np.isfinite(score).all():
        raise DotaddError("a threshold needs scores that are finite")
    for label, rows in ((classes[1], positive), (classes[0], ~positive)):
        if not rows.any():
            raise DotaddError(f"there is no row of class {as_written(label)} to choose a threshold by")
    distinct, place = np.unique(-score, return_inverse=True)
    true, false = (np.append(0.0, np.cumsum(np.bincount(place, each * rows))) for rows in (positive, ~positive))
    k = _chosen(wanted, true, false, -distinct, as_written(classes[1]))
    value = _between(-distinct, k)
    return Threshold(value, str(wanted), len(score), _measures(wanted, score > value, positive, each))


def _chosen(wanted: Purpose, true: np.ndarray, false: np.ndarray, score: np.ndarray, label: str) -> int:
    """How many of the distinct scores, highest first, are above the threshold. `true` and `false` are what rows weigh
    that are above it, for 0, 1, 2 and so on."""
    if wanted.name == "cost":
        tn, fp, fn, tp = wanted.costs
        cost = fn * (true[-1] - true) + fp * false + tp * true + tn * (false[-1] - false)
        return int(np.argmin(cost))
    recall, fpr = true / true[-1], false / false[-1]
    precision = true / np.maximum(true + false, np.finfo(np.float64).tiny)
    if wanted.name == "recall":
        return int(np.argmax(recall >= wanted.share - ROUNDING))
    serves = precision >= wanted.share - ROUNDING if wanted.name == "precision" else fpr <= wanted.share + ROUNDING
    serves &= true > 0.0
    if serves.any():
        return int(np.argmax(np.where(serves, true, -1.0)))
    if wanted.name == "precision":
        best = int(np.argmax(np.where(precision >= precision.max() - ROUNDING, true, -1.0)))
        raise DotaddError(
            f"no threshold has a precision of {wanted.share:g} for class {label}: the best is "
            f"{precision[best]:.4g}, at a recall of {recall[best]:.4g} (score above {_between(score, best):.4g})"
        )
    best = int(np.argmax(true > 0.0))
    raise DotaddError(
        f"no threshold has a false positive rate of {wanted.share:g} and finds any row of class {label}: the lowest "
        f"that does is {fpr[best]:.4g}, at a recall of {recall[best]:.4g} (score above {_between(score, best):.4g})"
    )


def _between(score: np.ndarray, k: int) -> float:
    """A number that the first k of these scores are above, and no other; they fall."""
    if k == 0:
        return float(score[0])
    if k == len(score):
        return float(np.nextafter(score[-1], -np.inf))
    middle = score[k - 1] / 2 + score[k] / 2
    return float(middle if middle < score[k - 1] else score[k])


def _measures(wanted: Purpose, found: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> dict[str, Interval]:
    def share(of: np.ndarray, among: np.ndarray) -> Interval:
        each = weight[among]
        return proportion(float(weight[of & among].sum()), float(each.sum()), float(each @ each) or None)

    measures = {
        "precision": share(positive, found),
        "recall": share(found, positive),
        "fpr": share(found, ~positive),
    }
    if wanted.name == "cost":
        cost = np.array(wanted.costs)[2 * positive + found]
        square = weight * weight
        sums = weight.sum(), weight @ cost, square.sum(), square @ cost, square @ (cost * cost)
        measures["cost"] = mean(*map(float, sums))
    return measures
