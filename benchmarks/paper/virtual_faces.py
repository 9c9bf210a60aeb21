"""Gender of faces, with and without virtual examples: figures 2a and 2b of COFFIN.

LFW, 13,228 gray faces of 24 x 24 pixels, three men to a woman. 70 % of the persons are for training, the others for
testing, nobody is in both. Test faces are distorted as the paper's are: moved by up to 2 pixels up or down and left or
right, scaled by up to 5 %, each drawn at random, the same for all runs. Virtual examples are all changes by the paper's
375: every face moved (5 x 5), turned (5) and scaled (3). The features are local binary patterns of the whole frame, 601
non-zeros in 153,856 slots; `window=(20, 20)` looks at the middle alone, so that a move shows real pixels and not the
repeated edge.

C is chosen on original training faces, of which a third of the persons is held out: for originals the one with the best
auROC; for virtual examples, each of which adds its loss, the smallest one within 0.01 of it. A relative duality gap of
0.01, all cores, each run in a process of its own. `s` is the whole fit, with making what is kept. Where there are
several draws of the originals, numbers are their means.

The examples held are the faces, their turned and scaled versions and two numbers for each virtual example; precomputed,
each would be its indices of 4 bytes. The peak is that of the whole process: Python, Numba, w and dual variables.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import dotadd
from benchmarks import datasets, memory, runs
from benchmarks.images import precomputed
from benchmarks.paper.coffin import Table, tell
from dotadd import LinearSVM
from dotadd._util.atomic import replacing
from dotadd.data.batches import Images
from dotadd.data.transforms import parse
from dotadd.features import LBP, Linear, Shape
from dotadd.features import parse as parse_features
from dotadd.features.on_demand import OnDemand
from dotadd.model import evaluation
from dotadd.problem.examples import InMemory
from dotadd.report import drawing
from dotadd.sources.around import Virtual
from dotadd.sources.base import Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE = datasets.FOLDER / "faces_lfw" / "lfw_gender_gray24.npz"
TRANSFORMS, TINY_TRANSFORMS = "translate(2) * rotate(6, step=3) * scale(0.05)", "translate(2) * rotate(6)"
DISTORTION = "translate(2) * scale(0.05, step=0.01)"
COSTS = (1e-4, 1e-3, 1e-2, 1e-1)
NEAR = 0.01  # of auROC that a smaller C may cost
TOLERANCE = 0.01
MAX_TIME = 480.0  # seconds of a run
NAMES = ["features", "originals", "transformations"]
QUALITY = [*NAMES, "examples", "C", "draws", "auROC, distorted", "auROC, as they are", "accuracy, distorted"]
QUALITY += ["s", "passes", "gap"]
MEMORY = ["examples", "held on demand, MB", "precomputed, MB", "times less", "peak on demand, MB"]
MEMORY += ["peak precomputed, MB", "s on demand", "s precomputed"]
PAPER = ["paper: 4,808,250", "1,300", "51,000", "40x", "-", "-", "-", "-"]


class Faces(NamedTuple):
    """Faces to train on and to test with, as they are and distorted, and who is to be seen."""

    images: Images
    female: np.ndarray
    person: np.ndarray
    test: Images
    distorted: Images
    test_female: np.ndarray

    def part(self, rows: np.ndarray) -> Source:
        return dotadd.open(self.images.take(rows), self.female[rows])


def load(tiny: bool = False) -> Faces:
    """The faces, split by person; tiny stands for crosses, upright or not, of people who have two each."""
    rng = np.random.default_rng(0)
    if tiny:
        values, female, person = _crosses(rng)
    else:
        with np.load(datasets.existing(FILE)) as file:
            values, female, person = file["X"].reshape(-1, 24, 24), file["gender"].astype(np.int64), file["person"]
    people = rng.permutation(np.unique(person))
    train = np.isin(person, people[: int(0.7 * len(people))])
    test, distortion = Images(values[~train]), parse(DISTORTION)
    which = rng.integers(0, len(distortion), len(test))
    distorted = distortion.apply(test, np.arange(len(test)), which)
    assert isinstance(distorted, Images)
    return Faces(Images(values[train]), female[train], person[train], test, distorted, female[~train])


def _crosses(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count, side = 400, 7
    values = rng.integers(0, 80, (count, 16, 16))
    upright, aslant = np.zeros((side, side), bool), np.eye(side, dtype=bool)
    upright[side // 2], upright[:, side // 2] = True, True
    female = rng.integers(0, 2, count)
    values[:, 4:11, 4:11] += 120 * np.stack([upright, aslant | aslant[::-1]])[female]
    return values.astype(np.uint8), female, np.arange(count) // 2


@dataclass(frozen=True)
class Run:
    """What a run trains on: so many originals of this draw (None is all), and their changes, if any."""

    originals: int | None
    transforms: str | None
    C: float
    features: str = "LBP()"
    draw: int = 0
    stored: bool = False  # whether features of all virtual examples are written down before
    tiny: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a run has found, and what it took."""

    examples: int
    distorted: float  # auROC
    undistorted: float
    accuracy: float  # on distorted faces
    seconds: float
    passes: int
    gap: float
    held: int  # bytes of the examples
    precomputed: int  # bytes of the indices of all of them
    peak: int  # bytes


def call(run: Run) -> Outcome:
    """Train in a process of its own."""
    return Outcome(**runs.call("benchmarks.paper.virtual_faces", asdict(run)))


def work(run: Run) -> Outcome:
    """What `call` has done in another process."""
    faces = load(run.tiny)
    phi = parse_features(run.features).resolve(Shape.of(faces.images))
    chosen = np.random.default_rng(run.draw).permutation(len(faces.images))[: run.originals]
    source = faces.part(chosen)
    began = perf_counter()
    data = (source if run.transforms is None else Virtual(source, run.transforms)).load()
    batch, nonzeros = data.batch, int(np.max(phi.bound(faces.images)))
    if run.stored:
        batch = precomputed(OnDemand(phi), batch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that time is up is told by the gap
        svm = LinearSVM(Linear() if run.stored else phi, C=run.C, tol=TOLERANCE, random_state=0, max_time=MAX_TIME)
        svm.fit(batch, data.y)
    seconds, peak = perf_counter() - began, memory.peak()
    w, b = svm.coef_[0], svm.intercept_[0]
    as_they_are, distorted = (InMemory(phi, some).dot([w])[0] + b for some in (faces.test, faces.distorted))
    woman = faces.test_female > 0
    return Outcome(
        len(batch), evaluation.auroc(woman, distorted), evaluation.auroc(woman, as_they_are),
        evaluation.accuracy(woman, distorted > 0), seconds, svm.result_.passes, float(svm.result_.gap),
        data.batch.nbytes, 4 * nonzeros * len(batch), peak,
    )  # fmt: skip


def tuned(tiny: bool) -> tuple[float, float]:
    """C for originals and for virtual examples, by a third of the persons of the training faces."""
    faces = load(tiny)
    people = np.random.default_rng(1).permutation(np.unique(faces.person))
    inside = np.isin(faces.person, people[len(people) // 3 :])
    train, held_out = np.flatnonzero(inside), np.flatnonzero(~inside)
    found = []
    for C in COSTS:
        svm = LinearSVM(LBP(), C=C, tol=TOLERANCE, random_state=0).fit(faces.part(train))
        scores = svm.decision_function(faces.images.take(held_out))
        found.append(evaluation.auroc(faces.female[held_out] > 0, scores))
        tell(f"C = {C:g}: auROC {found[-1]:.4f} on held-out training faces")
    near = next(C for C, area in zip(COSTS, found, strict=True) if area >= max(found) - NEAR)
    return COSTS[int(np.argmax(found))], near


def cases(tiny: bool, C: tuple[float, float] = (1.0, 1.0)) -> list[Run]:
    """The runs of the figures, draws one after the other; stored ones are for memory alone."""
    sizes = ((20, 2), (100, 1), (None, 1)) if tiny else ((1000, 3), (2000, 3), (5000, 1), (None, 1))
    changes = TINY_TRANSFORMS if tiny else TRANSFORMS
    found = []
    for originals, draws in sizes:
        for transforms, cost in ((None, C[0]), (changes, C[1])):
            found += [Run(originals, transforms, cost, draw=draw, tiny=tiny) for draw in range(draws)]
    (window, some), stored = ((12, 12), 100) if tiny else ((20, 20), 2000), sizes[:1] if tiny else sizes[:2]
    for transforms, cost in ((None, C[0]), (changes, C[1])):
        found.append(Run(some, transforms, cost, f"LBP(window={window})", tiny=tiny))
    return found + [Run(originals, changes, C[1], stored=True, tiny=tiny) for originals, _ in stored]


def measure(tiny: bool) -> Iterator[tuple[Run, list[Outcome]]]:
    """All runs, those that differ by their draw alone together, with draw 0 for all of them."""
    tell("choosing C")
    groups: dict[Run, list[Run]] = {}
    for run in cases(tiny, tuned(tiny)):
        groups.setdefault(replace(run, draw=0), []).append(run)
    for first, draws in groups.items():
        tell(f"{first.originals or 'all'} originals, {first.transforms or 'no changes'}, {first.features}")
        yield first, [call(run) for run in draws]


def names_of(run: Run) -> tuple[str, str, str]:
    """The first cells of a line."""
    return run.features, "all" if run.originals is None else f"{run.originals:,}", run.transforms or "none"


def quality_cells(run: Run, found: Sequence[Outcome]) -> list[str]:
    """A line of the table of figure 2a."""

    def mean(name: str) -> float:
        return float(np.mean([getattr(outcome, name) for outcome in found]))

    return [
        *names_of(run), f"{found[0].examples:,}", f"{run.C:g}", str(len(found)), f"{mean('distorted'):.4f}",
        f"{mean('undistorted'):.4f}", f"{mean('accuracy'):.4f}", f"{mean('seconds'):.1f}", f"{mean('passes'):.0f}",
        f"{mean('gap'):.4f}",
    ]  # fmt: skip


def memory_cells(on_demand: Outcome, stored: Outcome | None) -> list[str]:
    """A line of the table of figure 2b."""
    measured = on_demand.held, on_demand.precomputed, on_demand.peak
    held, rows, peak = (f"{size / 1e6:,.0f}" for size in measured)
    beside = ["-", f"{on_demand.seconds:.1f}", "-"]
    if stored is not None:
        beside = [f"{stored.peak / 1e6:,.0f}", f"{on_demand.seconds:.1f}", f"{stored.seconds:.1f}"]
    return [f"{on_demand.examples:,}", held, rows, f"{on_demand.precomputed / on_demand.held:.0f}x", peak, *beside]


def draw(found: Sequence[tuple[Run, list[Outcome]]], path: Path) -> None:
    """auROC and memory over the number of examples."""
    lines = {
        name: [outcomes for run, outcomes in found if run.features == "LBP()" and not run.stored
               and (run.transforms is None) == (name == "originals")]
        for name in ("originals", "virtual examples")
    }  # fmt: skip

    def figure() -> Figure:
        from matplotlib.figure import Figure

        whole = Figure(figsize=(9.6, 3.2), layout="constrained")
        area, size = whole.subplots(1, 2)
        for (name, groups), style in zip(lines.items(), ("s--", "o-"), strict=True):
            areas = [np.mean([outcome.distorted for outcome in group]) for group in groups]
            area.semilogx([group[0].examples for group in groups], areas, style, label=name)
        area.set_title("auROC on distorted faces")
        virtual = [group[0] for group in lines["virtual examples"]]
        stored = [group[0] for run, group in found if run.stored]
        for name, style, some, values in (
            ("precomputed: 4 bytes a non-zero", "s--", virtual, [one.precomputed for one in virtual]),
            ("precomputed: peak of the process", "x", stored, [one.peak for one in stored]),
            ("on demand: peak of the process", "o-", virtual, [one.peak for one in virtual]),
            ("on demand: examples held", "^:", virtual, [one.held for one in virtual]),
        ):
            size.semilogy([one.examples / 1e6 for one in some], [value / 1e6 for value in values], style, label=name)
        size.set_title("memory, MB")
        area.set_xlabel("training examples")
        size.set_xlabel("training examples, millions")
        area.legend(frameon=False, fontsize=8)
        size.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return whole

    with replacing(path) as temporary:
        temporary.write_bytes(drawing.drawn(figure, "svg", drawing.STYLE | {"text.parse_math": True}))


def main(*, tiny: bool = False, page: Path | None = None, pictures: Path | None = None) -> None:
    """Both tables, printed as they come and kept in the page, and the picture."""
    order = list(dict.fromkeys(names_of(run) for run in cases(tiny)))
    quality, found = Table("virtual_faces", QUALITY, order, page), []
    for run, outcomes in measure(tiny):
        found.append((run, outcomes))
        if not run.stored:
            quality.add(*quality_cells(run, outcomes))
    stored = {run.originals: outcomes[0] for run, outcomes in found if run.stored}
    plain = [(run, outcomes[0]) for run, outcomes in found if run.transforms and run.features == "LBP()"]
    kept = Table("virtual_memory", MEMORY, [(f"{outcome.examples:,}",) for _, outcome in plain], page)
    for run, outcome in plain:
        if not run.stored:
            kept.add(*memory_cells(outcome, stored.get(run.originals)))
    kept.add(*PAPER)
    if pictures is not None:
        draw(found, pictures / "virtual_faces.svg")


if __name__ == "__main__":
    print(json.dumps(asdict(work(Run(**json.loads(sys.argv[1]))))))
