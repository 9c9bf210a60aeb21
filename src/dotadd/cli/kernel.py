"""The options of kernel machines, and what a person sees while they are trained."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dotadd.cli.large import Streaming
from dotadd.cli.options import Count, Real, Solving
from dotadd.cli.progress import BAR_INSIDE, LINE, Watch, write_json_line
from dotadd.cli.screen import duration, facts, label_text, number, tell

if TYPE_CHECKING:
    from dotadd.estimators.kernel import KernelSVM
    from dotadd.kernel_svm.problem import KernelProgress
    from dotadd.model.file import Record

WHOSE = {"gamma": ("rbf", "poly", "sigmoid"), "degree": ("poly",), "coef0": ("poly", "sigmoid")}


@Parameter(name="*", group="Kernel machines")
@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """The kernel, if there is one, and its parameters."""

    kernel: str | None = None
    """Train a kernel machine: linear, poly, rbf, sigmoid, precomputed, or an expression such as "Spectrum(4)".
--memory is then what kernel values may take, 500MB by default; --solver is double_chunking, chunking or smo."""

    gamma: Annotated[str | None, Parameter(show_default=False)] = None
    """gamma of rbf, poly and sigmoid: a number, "scale" (the default) or "auto"."""

    degree: Annotated[Count | None, Parameter(show_default=False)] = None
    """The degree of poly, 3 by default."""

    coef0: Annotated[Real | None, Parameter(show_default=False)] = None
    """What poly and sigmoid add to inner products, 0 by default."""

    def require(self, solving: Solving, streaming: Streaming) -> None:
        """Refuse options that would not act."""
        from dotadd.errors import DotaddError

        given = [name for name in WHOSE if getattr(self, name) is not None]
        if self.kernel is None:
            if given:
                raise DotaddError(f"--{given[0]} means nothing without --kernel")
            return
        for name in given:
            if self.kernel not in WHOSE[name]:
                raise DotaddError(f"--{name} is for --kernel {' or '.join(WHOSE[name])}, and not for {self.kernel}")
        unused = [name for name in ("features", "loss", "intercept", "max_passes") if _changed(solving, name)]
        unused += [name for name in asdict(streaming) if _changed(streaming, name)]
        if unused:
            instead = ": write the feature map as --kernel" if unused[0] == "features" else ""
            raise DotaddError(f"--{unused[0].replace('_', '-')} means nothing with --kernel{instead}")

    def svm(self, solving: Solving, solver: str) -> KernelSVM:
        """The estimator that these options describe; the expression of the kernel is read at once."""
        from dotadd.errors import DotaddError
        from dotadd.estimators.kernel import KernelSVM
        from dotadd.kernel_svm.expression import named
        from dotadd.kernel_svm.problem import USUAL

        assert self.kernel is not None
        gamma: float | str = "scale" if self.gamma is None else self.gamma
        if gamma not in ("scale", "auto"):
            try:
                gamma = float(gamma)
            except ValueError:
                raise DotaddError(f'--gamma {gamma}: give a number, "scale" or "auto"') from None
        kernel = named(
            self.kernel, gamma, 3 if self.degree is None else self.degree, 0.0 if self.coef0 is None else self.coef0
        )
        return KernelSVM(
            kernel,
            C=solving.cost,
            solver=USUAL if solver == "auto" else solver,
            tol=solving.tol,
            memory=solving.memory or "500MB",
            class_weight=None if solving.class_weight == "none" else solving.class_weight,
            max_time=solving.max_time,
            random_state=solving.seed,
            n_jobs=solving.jobs,
        )


def _changed(options: Solving | Streaming, name: str) -> bool:
    return getattr(options, name) != getattr(type(options)(), name)


class KernelWatch(Watch):
    """Called by the solver every now and then; keeps the log and the screen up to date."""

    def __call__(self, progress: KernelProgress, which: int, problems: int) -> None:  # type: ignore[override]  # of steps
        self.first = (0.0, 0.0)
        widest = self.trends.setdefault(which, [(progress.seconds, progress.violation)])[0][1]
        if self.log is not None:
            write_json_line(self.log, {"problem": which, **progress._asdict()})
        since = time.monotonic() - self.last_shown
        if self.quiet or since < (LINE if self.bar is None else BAR_INSIDE):
            return
        self.last_shown = time.monotonic()
        text = f"steps {progress.steps:,}  dual {number(progress.dual)}  violation {number(progress.violation, 3)}"
        text += f"  support vectors {progress.support:,}  {duration(progress.seconds)}"
        if problems > 1:
            text = f"pair {which + 1} of {problems}: {text}"
        if self.bar is None:
            tell(text)
            return
        share = 0.0
        if widest > self.tol and progress.violation > 0.0:
            share = min(1.0, max(0.0, math.log(widest / progress.violation) / math.log(widest / self.tol)))
        self.bar.update(self.task, description=text, total=problems, completed=which + share)


def summary(svm: KernelSVM, output: str) -> Record:
    """What is worth knowing of a training run, as plain data."""
    inside = svm.model_.inspect()
    return {key: inside[key] for key in ("kernel", "support", "classes", "training")} | {"model": output}


def show(svm: KernelSVM, output: str) -> None:
    """The summary on screen."""
    from dotadd.kernel_svm.problem import worst_of

    model = svm.model_
    found = svm.result_ if isinstance(svm.result_, list) else [svm.result_]
    training = model.training
    worst = worst_of(found)
    total = int(model.counts.sum())
    of_pairs = "" if len(found) == 1 else f" in the worst of {len(found)} pairs of classes"
    facts(
        {
            "rows": f"{training['rows']:,} in {len(model.classes)} classes",
            **({"virtual": f"by {training['virtual']}"} if "virtual" in training else {}),
            "kernel": repr(model.kernel),
            "vectors": f"{total:,} support vectors: {_counts(model.counts.tolist(), model.classes.tolist())}",
            "solver": f"{svm.solver}: {training['steps']:,} steps in {duration(sum(training['seconds'].values()))}",
            "primal": number(worst.primal) + of_pairs,
            "dual": number(worst.dual),
            "violation": number(worst.violation, 3),
            "stopped": training["reason"],
            "model": output,
        }
    )


def show_inside(path: str, inside: Record) -> None:
    """What `inspect` tells of a kernel machine."""
    from dotadd.cli.inspect import shape_text, training_text

    lines = {
        "model": path,
        "kernel": inside["kernel"],
        "data": shape_text(**inside["shape"]),
        "classes": ", ".join(label_text(label) for label in inside["classes"]),
        "vectors": f"{sum(inside['support']):,} support vectors: {_counts(inside['support'], inside['classes'])}",
    }
    if len(inside["intercept"]) == 1:
        lines["intercept"] = number(inside["intercept"][0])
    for name, value in (inside["training"] | inside["written"]).items():
        if value is not None:
            lines[name.replace("_", " ")] = training_text(value)
    facts(lines)


def _counts(counts: list[int], labels: list[object]) -> str:
    return ", ".join(f"{count:,} of {label_text(label)}" for count, label in zip(counts, labels, strict=True))
