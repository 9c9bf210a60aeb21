"""Cutting planes compared, as Franc and Sonnenburg (2009) did: OCAS, BMRM and SVM-perf's 1-slack form.

All three are dotadd's own, one loop with three choices of where to cut, so that nothing differs but the method. Hinge
loss, a regularised intercept, one thread. Each runs until its relative duality gap is 0.001, or its time is up; on the
way it is noted how many planes and seconds it took to gaps of 0.1 and 0.01. The seconds of the whole run are split as
in libocas's record: outputs of all examples (DOT), the line search and what precedes it (sort), new planes (ADD), sums
of planes, and the quadratic program. Windows are 20,000 of chromosome 19 with the features of COFFIN's table 2.

    python -m benchmarks.paper.cutting_planes [--max-time S] [--write docs/results.md] [--draw F.svg] [--tiny] [a9a ...]
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import datasets
from benchmarks.paper.coffin import Data, Features, Table, tell
from dotadd import LinearSVM
from dotadd._util.atomic import replacing
from dotadd.solvers.result import Progress, Result

STYLES = {"ocas": "C0-", "bmrm": "C3-", "svmperf": "C2--"}
METHODS = tuple(STYLES)
NAMES = ("a9a", "w8a", "ijcnn1", "windows")
COSTS = (1.0, 0.1)
GAPS = (0.1, 0.01, 0.001)
PHASES = ("output", "sort", "add", "w", "qp")
WINDOWS, TINY_WINDOWS = 20_000, 300
MAX_TIME = 60.0  # seconds of a run
COLUMNS = ["data", "C", "method", *(f"planes to {gap:g}" for gap in GAPS), *(f"s to {gap:g}" for gap in GAPS)]
COLUMNS += ["passes", "gap", *(f"{phase}, s" for phase in PHASES)]


@dataclass(frozen=True)
class Compared:
    """One method on one problem."""

    name: str
    C: float
    method: str
    result: Result

    def to(self, gap: float) -> tuple[int, Progress] | None:
        """How many planes it took to this gap, and how far it was then; None if it did not get there."""
        return next(((n, now) for n, now in enumerate(self.result.trace) if now.gap <= gap), None)


def load(name: str, windows: Data) -> tuple[Any, Any, str | None]:
    """Examples, labels and features by name."""
    if name != "windows":
        return *datasets.load(name, windows.tiny), None
    features = Features(6, 6, order=3) if windows.tiny else Features(20, 12)
    return str(windows.train(TINY_WINDOWS if windows.tiny else WINDOWS)), None, features.expression


def measure(data: Data, names: Sequence[str], max_time: float = MAX_TIME) -> Iterator[Compared]:
    """Train with each method on each problem."""
    for name in names:
        X, y, phi = load(name, data)
        for method in METHODS:  # compile
            fit(X, y, phi, 0.01, method, tol=0.5, max_time=max_time)
        for C in COSTS:
            for method in METHODS:
                tell(f"{name}, C = {C:g}: {method}")
                result = fit(X, y, phi, C, method, tol=GAPS[-1], max_time=max_time)
                yield Compared(name, C, method, result)


def fit(X: Any, y: Any, phi: str | None, C: float, method: str, *, tol: float, max_time: float) -> Result:
    svm = LinearSVM(phi, C=C, solver=method, tol=tol, max_time=max_time, max_passes=10**6, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that time was up is told by the table
        result = svm.fit(X, y).result_
    assert isinstance(result, Result)
    return result


def cells_of(compared: Compared) -> list[str]:
    """A line of the table."""
    result = compared.result
    reached = [compared.to(gap) for gap in GAPS]
    return [
        compared.name,
        f"{compared.C:g}",
        compared.method,
        *("-" if found is None else str(found[0]) for found in reached),
        *("-" if found is None else f"{found[1].seconds:.2f}" for found in reached),
        str(result.passes),
        "" if result.gap is None else f"{result.gap:.2g}",
        *(f"{result.seconds.get(phase, 0.0):.2f}" for phase in PHASES),
    ]


def draw(found: Sequence[Compared], path: Path) -> None:
    """The gap over the number of planes, a picture for each problem."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(one.name for one in found))
    costs = list(dict.fromkeys(one.C for one in found))
    with rc_context({"svg.hashsalt": "dotadd"}):  # the same curves give the same file
        figure = Figure(figsize=(2.4 * len(names) + 0.8, 2.3 * len(costs) + 0.6), layout="constrained")
        axes = figure.subplots(len(costs), len(names), sharey=True, squeeze=False)
        for one in found:
            axis = axes[costs.index(one.C), names.index(one.name)]
            gaps = [now.gap for now in one.result.trace[1:]]
            axis.loglog(range(1, len(gaps) + 1), gaps, STYLES[one.method], label=one.method)
            axis.set_title(f"{one.name}, C = {one.C:g}", fontsize="medium")
            axis.spines[["top", "right"]].set_visible(False)
        axes[0, 0].legend(frameon=False)
        figure.supxlabel("planes", fontsize="medium")
        figure.supylabel("relative duality gap", fontsize="medium")
        with replacing(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})


def main(
    *,
    tiny: bool = False,
    names: Sequence[str] = NAMES,
    max_time: float = MAX_TIME,
    page: Path | None = None,
    picture: Path | None = None,
) -> None:
    """The table, printed as it comes and kept in the page, and the picture."""
    with tempfile.TemporaryDirectory() as folder:
        data = Data(Path(folder), tiny)
        order = [(name, f"{C:g}", method) for name in NAMES for C in COSTS for method in METHODS]
        table = Table("cutting_planes", COLUMNS, order, page)
        found = []
        for compared in measure(data, names, max_time):
            table.add(*cells_of(compared))
            found.append(compared)
    if picture is not None:
        draw(found, picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--tiny", action="store_true", help="a few hundred simulated windows and rows")
    parser.add_argument("--max-time", type=float, default=MAX_TIME, help="seconds for each run; %(default)g")
    parser.add_argument("--write", type=Path, help="a page with marks for the table, to be kept up to date")
    parser.add_argument("--draw", type=Path, help="the picture, as SVG")
    arguments = parser.parse_args()
    names = arguments.names or NAMES
    if unknown := sorted(set(names) - set(NAMES)):
        parser.error(f"there is no {unknown[0]}; choose among {', '.join(NAMES)}")
    main(tiny=arguments.tiny, names=names, max_time=arguments.max_time, page=arguments.write, picture=arguments.draw)
