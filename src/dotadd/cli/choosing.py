"""Choosing C by cross-validation: `dotadd train -C auto`, and `dotadd tune` for several features."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from cyclopts import Parameter

from dotadd._util.atomic import replacing, require_writable
from dotadd.cli.options import OUTPUT, Count, Reading, Solving, Training, columns_for, tell_skipped, title_of
from dotadd.cli.progress import Watch
from dotadd.cli.screen import Json, duration, facts, number, shortened, show_table, tell, write_json
from dotadd.errors import DotaddError, NotConvergedWarning
from dotadd.estimators.course import FoldsCourse

if TYPE_CHECKING:
    from dotadd.cli.large import Streaming
    from dotadd.estimators.choosing import ChoosesC
    from dotadd.estimators.cross_validation import LinearSVMCV
    from dotadd.estimators.kernel import KernelSVM
    from dotadd.estimators.kernel_cross_validation import KernelSVMCV
    from dotadd.estimators.linear import LinearSVM
    from dotadd.model.file import Record

FOLDS, VALUES = 5, 10


@Parameter(name="*", group="Choosing C")
@dataclass(frozen=True, kw_only=True)
class Choosing:
    """How a machine is judged by rows that it was not trained on."""

    cv: Count | None = None
    """Judge by so many folds (5 with -C auto), each held out in its turn."""

    Cs: Annotated[str | None, Parameter(name="--Cs")] = None
    """The values of C to try, such as 0.01,0.1,1, or how many: 10 by default, spread over five decades."""

    scoring: str | None = None
    """What is best: accuracy by default, roc_auc, average_precision, f1_macro or any other name of scikit-learn's."""

    group: str | None = None
    """Column whose rows of one value stay together in a fold, such as a person or a chromosome."""

    time: str | None = None
    """Column with times: each fold is tested on what comes after the rows that it is trained on."""

    rule: Literal["best", "one_standard_error"] = "best"
    """Take the C with the best mean, or the smallest that is within a standard error of it."""

    probability: Literal["sigmoid", "isotonic", "none"] = "none"
    """Learn probabilities from the held-out scores; the logistic loss has them without."""

    threshold: str | None = None
    """Predict for a purpose, by a threshold chosen on the held-out scores: precision=0.99, recall=0.9, fpr=1e-4 or
    costs such as fp=5,fn=1."""

    def wanted(self, solving: Solving) -> bool:
        """Whether there are folds; refuses options that would need them."""
        if self.cv is not None or solving.cost == "auto":
            return True
        needing = {
            "--Cs": self.Cs, "--scoring": self.scoring, "--group": self.group, "--time": self.time,
            "--rule": self.rule != "best", "--probability": self.probability != "none", "--threshold": self.threshold,
        }  # fmt: skip
        for name, given in needing.items():
            if given:
                raise DotaddError(f"{name} is for folds: give -C auto, or --cv with a number of them")
        return False

    @property
    def ids(self) -> list[str]:
        """Columns that folds are made by."""
        if self.group is not None and self.time is not None:
            raise DotaddError("--group and --time cut the rows in two ways: give one of them")
        return [name for name in (self.group, self.time) if name is not None]

    def around(self, machine: LinearSVM, solving: Solving, *, refit: bool = True) -> LinearSVMCV:
        """The estimator that chooses C for a machine like this one."""
        from dotadd.estimators.cross_validation import LinearSVMCV

        return LinearSVMCV(**self._arguments(machine, solving, refit=refit))

    def around_kernel(self, machine: KernelSVM, solving: Solving) -> KernelSVMCV:
        """The same for a kernel machine."""
        from dotadd.estimators.kernel_cross_validation import KernelSVMCV

        return KernelSVMCV(**self._arguments(machine, solving, refit=True))

    def _arguments(self, machine: LinearSVM | KernelSVM, solving: Solving, *, refit: bool) -> Record:
        shared = machine.get_params(deep=False)
        del shared["C"]
        return {
            "Cs": self.values(solving),
            "cv": self.cv or FOLDS,
            "scoring": self.scoring,
            "rule": self.rule,
            "probability": None if self.probability == "none" else self.probability,
            "threshold": self.threshold,
            "refit": refit,
            **shared,
        }

    def values(self, solving: Solving) -> list[float] | int:
        """The values of C that are tried, or how many."""
        if solving.cost != "auto":
            if self.Cs is not None:
                raise DotaddError("--Cs are values to choose from: give -C auto with them")
            return [solving.cost]
        if self.Cs is None:
            return VALUES
        words = [word.strip() for word in self.Cs.split(",")]
        if len(words) == 1 and words[0].isdigit():
            return int(words[0])
        try:
            return [float(word) for word in words]
        except ValueError:
            raise DotaddError(f"--Cs {self.Cs} is no list of numbers such as 0.01,0.1,1, nor how many") from None

    def fit_options(self) -> Record:
        """The arguments of `fit` about folds."""
        return {"groups": self.group, "times": self.time}


def refuse_unfit(streaming: Streaming) -> None:
    """Refuse what does not go with folds."""
    if streaming.asked:
        raise DotaddError("cross-validation keeps no checkpoint: leave out --checkpoint and --resume")


def show_choice(svm: ChoosesC) -> None:
    """The table of what was tried, and what to make of it."""
    found = svm.cv_results_
    columns = (found[f"{name}_test_score"] for name in ("mean", "std", "pooled"))
    rows = [
        [
            f"{C:.3g}" + " *" * (k == svm.best_index_),
            *(f"{score:.4f}" for score in scores),
            f"{passes:,}",
            number(gap, 2),
        ]
        for k, (C, *scores, passes, gap) in enumerate(
            zip(found["param_C"], *columns, found["max_passes"], found["max_gap"], strict=True)
        )
    ]
    name = svm.scoring or "accuracy"
    title = f"{name} on rows held out by {len(svm.scores_)} folds"
    worked = "passes" if hasattr(svm, "phi") else "steps"
    show_table(["C", "mean", "spread", "pooled", worked, "gap"], rows, title=title)
    if (told := at_the_edge(svm)) is not None:
        tell(told)


def choice(svm: ChoosesC) -> Record:
    """The same as plain data: the C that was chosen, its score, and what was measured for each."""
    names = ("param_C", "mean_test_score", "std_test_score", "pooled_test_score", "max_passes", "max_gap")
    tried = {name: svm.cv_results_[name] for name in names}
    about = {"scoring": svm.scoring or "accuracy", "folds": len(svm.scores_), "C": svm.C_, "mean": svm.best_score_}
    return about | {"tried": tried, "advice": at_the_edge(svm)}


def at_the_edge(svm: ChoosesC) -> str | None:
    """What to try if the best C is the first or last one."""
    Cs = svm.cv_results_["param_C"]
    if len(Cs) < 2 or Cs[0] < svm.C_ < Cs[-1] or svm.rule != "best":
        return None
    side = "smallest" if Cs[0] == svm.C_ else "largest"
    return f"the best C is the {side} that was tried: try others with --Cs"


def tune(
    *data: str,
    features: Annotated[list[str] | None, Parameter(negative="")] = None,
    plot: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    solver: str = "auto",
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="", show_default=False, group=OUTPUT)] = False,
    as_json: Json = False,
    choosing: Choosing = Choosing(),
    training: Training = Training(),  # noqa: B008
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Try several features, each with many values of C.

    For each expression of --features, machines are trained on folds of the data and
    judged by the rows that were held out. A line for each tells the best C and how
    good it is; the features that are best stand first.

    Examples:

        dotadd tune mails.csv --column text --label spam \\
            --features "WordNGrams((1, 2)).tfidf()" --features "NGrams((3, 5)).tfidf()"
        dotadd tune sites.fasta --features "Spectrum(6)" --features "Spectrum(8)" \\
            --scoring roc_auc --plot tuned.svg

    Parameters
    ----------
    data
        One or more files, as for training.
    features
        A feature map, written as in Python; as often as there are such to try.
    plot
        Draw the scores over C to this file: .svg, .png or .pdf.
    solver
        The algorithm, as for training.
    quiet
        No progress.
    """
    from dotadd.report.drawing import require_format

    if not data:
        raise DotaddError("give a data file to try features on")
    if plot is not None:
        require_format(plot, ("svg", "png", "pdf"), "pictures of scores")
        require_writable(plot)
    tried: dict[str, Attempt] = {}
    expressions: list[str | None] = [*features] if features else [None]
    for expression in expressions:
        asked = Solving(features=expression, cost="auto", **asdict(training))
        svm = choosing.around(replace(asked, cost=1.0).svm(solver), asked, refit=False)
        source = reading.open(list(data), ids=choosing.ids)
        if (columns := columns_for(svm, source, quiet=quiet)) is not None:
            source = reading.open(list(data), columns, ids=choosing.ids)
        name = expression or repr(svm.phi or "the numbers themselves")
        watch = Watch(title_of(data), FoldsCourse(asked.limits), log=None, quiet=quiet)
        with watch, warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            began = time.perf_counter()
            try:
                svm.fit(source, on_progress=watch, announce=watch.announce, **choosing.fit_options())
            except KeyboardInterrupt:  # what was tried before is worth to be seen
                if tried and not as_json:
                    show_tried(tried)
                raise
        tell_skipped(source)
        tried[name] = Attempt(svm, time.perf_counter() - began)
    if not as_json:
        show_tried(tried)
    if plot is not None:
        from dotadd.report.tuning import picture

        drawn = picture({name: one.svm for name, one in tried.items()}, title_of(data), plot.rsplit(".", 1)[-1].lower())
        with replacing(plot) as temporary:
            temporary.write_bytes(drawn)
    if as_json:
        told = [{"features": name, "seconds": one.seconds, **choice(one.svm)} for name, one in tried.items()]
        write_json({"data": list(data), "tried": sorted(told, key=lambda one: -one["mean"]), "picture": plot})
    elif plot is not None:
        facts({"picture": plot})


class Attempt(NamedTuple):
    """What was found for some features, and in how many seconds."""

    svm: ChoosesC
    seconds: float

    @property
    def best(self) -> tuple[float, float]:
        """Mean and spread of the score at the C that was chosen."""
        found = self.svm.cv_results_
        return self.svm.best_score_, float(found["std_test_score"][self.svm.best_index_])


def show_tried(tried: dict[str, Attempt]) -> None:
    """A line for each of the features, the best first."""
    order = sorted(tried, key=lambda name: -tried[name].best[0])
    rows = []
    for name in order:
        one, (mean, spread) = tried[name], tried[name].best
        rows.append([name, f"{one.svm.C_:.3g}", f"{mean:.4f}", f"{spread:.4f}", duration(one.seconds)])
    first = tried[order[0]].svm
    title = f"{first.scoring or 'accuracy'} on rows held out by {len(first.scores_)} folds"
    show_table(["features", "best C", "mean", "spread", "time"], rows, title=title)
    for name in order:
        if (told := at_the_edge(tried[name].svm)) is not None:
            tell(f"{shortened(name, 60)}: {told}")
