"""Solvers compared: how objective and gap fall over seconds and passes, as a page, a picture or plain data.

While a solver runs, it reports estimates; at its end primal and dual are recomputed from scratch. No objective can be
below a certified dual, whoever found it, so the largest of them is the ground that all objectives are measured from.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dotadd._util.atomic import replacing
from dotadd.model.file import Record, jsonable
from dotadd.report import drawing
from dotadd.report.drawing import definitions, page, paragraphs, table, text
from dotadd.solvers.result import Progress, Result

FORMATS = ("html", "svg", "png", "json")
WITHIN = (0.01, 0.001)  # of the best objective: when was a solver as near as this?
HEADINGS = (
    "solver", "passes", "seconds", "objective", "above bound", "gap", *(f"to {100 * share:g}%" for share in WITHIN),
    "stopped because",
)  # fmt: skip


class Point(NamedTuple):
    """How far a solver was at some moment; `gap` is nan where it is not known."""

    passes: float
    seconds: float
    primal: float
    gap: float


@dataclass(frozen=True)
class SolverRun:
    """One solver's way: its results for the binary problems, seconds until it had certified them, and the objective of
    w = 0, which each binary problem has before its first pass.

    Where there are several binary problems, their objectives are added up: the sum is what one against the rest
    minimises. Some solvers advance all problems by one pass at a time, and others finish one problem after the other.
    So the sum follows the clock, and passes are the mean over the problems.
    """

    solver: str
    results: list[Result]
    seconds: float
    untrained: float

    @classmethod
    def of(cls, solver: str, results: Iterable[Result], seconds: float, untrained: float) -> SolverRun:
        """Without weights and dual variables, which nobody looks at here and which may be large."""
        return cls(solver, [replace(one, w=np.empty(0), duals=None) for one in results], seconds, untrained)

    @property
    def primal(self) -> float:
        return sum(result.primal for result in self.results)

    @property
    def dual(self) -> float | None:
        duals = [result.dual for result in self.results if result.dual is not None]
        return sum(duals) if len(duals) == len(self.results) else None

    @property
    def gap(self) -> float | None:
        if len(self.results) == 1:
            return self.results[0].gap
        dual, primal = self.dual, self.primal
        return None if dual is None else (primal - dual) / primal if primal > 0.0 else 0.0

    @property
    def passes(self) -> float:
        return sum(result.passes for result in self.results) / len(self.results)

    @property
    def reason(self) -> str:
        return "; ".join(dict.fromkeys(result.reason.value for result in self.results))

    @property
    def sampled(self) -> list[Progress]:
        """Passes over a sample of the rows, which is another problem."""
        return [row for result in self.results for row in result.trace if row.sample is not None]

    @cached_property
    def points(self) -> list[Point]:
        """What was told after each pass over all rows, and at the end what is certified."""
        latest = [Progress(0, 0.0, self.untrained, math.nan, 1.0, 0, 0) for _ in self.results]
        told = [(row.seconds, k, row) for k, result in enumerate(self.results) for row in result.trace]
        found = []
        for seconds, k, row in sorted(told, key=lambda one: one[:2]):
            latest[k] = row
            if all(one.sample is None for one in latest):
                primal = sum(one.primal for one in latest)
                gap = sum(one.gap * one.primal for one in latest) / primal if primal > 0.0 else 0.0
                found.append(Point(sum(one.passes for one in latest) / len(latest), seconds, primal, gap))
        if math.isfinite(self.primal):
            gap = math.nan if self.gap is None else self.gap
            found.append(Point(self.passes, self.seconds, self.primal, gap))
        return found

    def reached(self, objective: float) -> float | None:
        """Seconds after which no objective was above this one, not even the certified one; None if there are none."""
        if not math.isfinite(self.primal):
            return None
        when = None
        for point in reversed(self.points):
            if not point.primal <= objective:
                break
            when = point.seconds
        return when


@dataclass(frozen=True)
class Comparison:
    """Runs of several solvers on one problem. `problem` states it as plain data; `refused` says why a solver did not
    run."""

    title: str
    problem: Record
    runs: list[SolverRun]
    refused: dict[str, str]

    @property
    def best(self) -> float:
        """The smallest certified objective; nan if there is none."""
        return min((run.primal for run in self.runs if math.isfinite(run.primal)), default=math.nan)

    @property
    def bound(self) -> float | None:
        """The largest certified dual: the sum of the largest of each binary problem, None if one of them has none."""
        bounds = [
            max((one.dual for one in of_problem if one.dual is not None and math.isfinite(one.dual)), default=None)
            for of_problem in zip(*(run.results for run in self.runs), strict=True)
        ]
        known = [bound for bound in bounds if bound is not None]
        return sum(known) if len(known) == len(bounds) > 0 else None

    def above(self, primal: float) -> float:
        """How far an objective is above the bound, or above the best one if there is no bound, as share of the best."""
        ground = self.best if self.bound is None else self.bound
        return (primal - ground) / self.best if self.best > 0.0 else primal - ground

    def rows(self) -> list[list[str]]:
        """The table for people: a row for each run, as HEADINGS has it."""
        return [
            [
                run.solver,
                f"{run.passes:.4g}" if len(run.results) > 1 else str(run.results[0].passes),
                _short(run.seconds),
                _short(run.primal, 7),
                _percent(max(0.0, self.above(run.primal)) if math.isfinite(run.primal) else None),
                _percent(run.gap),
                *(_short(run.reached((1.0 + share) * self.best)) for share in WITHIN),
                run.reason,
            ]
            for run in self.runs
        ]

    def notes(self) -> list[str]:
        """What has to be known to read the numbers."""
        best = [run.solver for run in self.runs if run.primal == self.best]
        said = [f"The best objective is {_short(self.best, 7)}, of {' and '.join(best)}."] if best else []
        if self.bound is None:
            said += [
                "No solver has certified a dual, so objectives are measured from the best one, and nobody knows how "
                "far the optimum is below it."
            ]
        else:
            said += [
                f"No weights have an objective below {_short(self.bound, 7)}, the largest certified dual; objectives "
                "are measured from it, in percent of the best one."
            ]
        said += [
            "Lines are what solvers estimate while they run. The mark at the end of a line is recomputed from scratch, "
            "and its seconds contain that work. No seconds contain reading or compiling.",
            '"to 1%" is the number of seconds after which the objective stayed within 1% of the best one.',
        ]
        without = [run.solver for run in self.runs if run.gap is None]
        if without:
            said += [f"Without dual variables there is no gap: {', '.join(without)}."]
        problems = max((len(run.results) for run in self.runs), default=1)
        if problems > 1:
            said += [
                f"There are {problems} binary problems, one class against the rest; objectives and duals are sums over "
                "them, passes the mean. Until its first pass ends, a problem has the objective of weights all 0. "
                "Solvers that take one problem after the other fall in steps."
            ]
        for run in self.runs:
            if run.sampled:
                last = max(run.sampled, key=lambda row: row.seconds)
                said += [
                    f"Until {_short(last.seconds)} s {run.solver} trained on a sample, at last {last.sample:,} rows. "
                    "That is another problem, so the line begins later."
                ]
        return said + [f"{solver} did not run: {why}" for solver, why in self.refused.items()]


def require_format(path: str | os.PathLike[str]) -> str:
    """The format of a file of this name; raises if it is none of ours, or if nothing could draw it."""
    return drawing.require_format(path, FORMATS, "comparisons")


def write(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write the comparison; the end of the file's name says in which format. It appears whole or not at all."""
    kind = require_format(path)
    with replacing(path) as temporary:
        if kind == "json":
            temporary.write_text(json.dumps(as_json(comparison), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        elif kind == "html":
            temporary.write_text(as_page(comparison), encoding="utf-8")
        else:
            from dotadd.report.curves import picture

            temporary.write_bytes(picture(comparison, kind))


def as_json(comparison: Comparison) -> Record:
    """Everything, with the trace of each binary problem as its solver told it."""

    def problem(result: Result) -> Record:
        names = ("primal", "dual", "gap", "reason", "passes")
        told = {name: getattr(result, name) for name in names} | {"phases": result.seconds}
        return told | {"trace": [row._asdict() for row in result.trace]}

    def solver(run: SolverRun) -> Record:
        names = ("solver", "passes", "seconds", "primal", "dual", "gap", "reason")
        reached = {f"{share:g}": run.reached((1.0 + share) * comparison.best) for share in WITHIN}
        told = {name: getattr(run, name) for name in names} | {"above": comparison.above(run.primal)}
        return told | {"seconds_to_within": reached, "problems": [problem(result) for result in run.results]}

    return jsonable(
        {
            "problem": comparison.problem,
            "best": comparison.best,
            "bound": comparison.bound,
            "solvers": [solver(run) for run in comparison.runs],
            "refused": comparison.refused,
        }
    )


def as_page(comparison: Comparison) -> str:
    """A page that needs nothing but itself."""
    from dotadd.report.curves import inline

    drawn, style = inline(comparison)
    body = [
        f'<figure role="img" aria-label="objective and gap over seconds and passes">{drawn}</figure>',
        table(HEADINGS, comparison.rows(), words=(0, len(HEADINGS) - 1)),
        paragraphs(comparison.notes()),
        "<h2>The problem</h2>",
        definitions({name.replace("_", " "): _fact(value) for name, value in comparison.problem.items()}),
    ]
    return page(f"Solvers compared on {text(comparison.title)}", "\n".join(body), style)


def _short(value: float | None, digits: int = 3) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def _percent(share: float | None) -> str:
    return "-" if share is None or not math.isfinite(share) else f"{100 * share:.3g}%"


def _fact(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value[:20])) + (f" and {len(value) - 20} more" if len(value) > 20 else "")
    return "none" if value is None else f"{value:,}" if isinstance(value, int) and value > 9999 else str(value)
