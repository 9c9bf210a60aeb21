"""The options that state the problem and say when it is solved, shared by the commands that train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from dotadd.cli.numbers import Real, Seed, Whole

if TYPE_CHECKING:
    from dotadd.estimators import LinearSVM
    from dotadd.solvers.result import Result

OUTPUT = Group("Output", sort_key=1)
PROBLEM = Group("The problem", sort_key=2)
STOPPING = Group("Solving it", sort_key=3)
MEMORY = Group("Data larger than memory", sort_key=4)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Solving:
    """The problem, and how far to solve it."""

    features: Annotated[str | None, Parameter(group=PROBLEM)] = None
    """The feature map, written as in Python; the numbers themselves by default."""

    cost: Annotated[Real, Parameter(name=["-C", "--cost"], group=PROBLEM)] = 1.0
    """C, the weight of the losses against the size of w."""

    loss: Annotated[Literal["hinge", "squared_hinge", "logistic"], Parameter(group=PROBLEM)] = "hinge"
    """What a wrong or narrow decision costs."""

    intercept: Annotated[Literal["regularized", "free", "none"], Parameter(group=PROBLEM)] = "regularized"
    """The intercept: a constant feature, free of any penalty, or none."""

    class_weight: Annotated[Literal["none", "balanced"], Parameter(group=PROBLEM)] = "none"
    """"balanced" lets each class weigh the same in total."""

    tol: Annotated[Real, Parameter(group=STOPPING)] = 1e-3
    """Stop when the relative duality gap is no larger."""

    max_passes: Annotated[Whole, Parameter(group=STOPPING)] = 1000
    """Stop after so many passes over the data."""

    max_time: Annotated[Real | None, Parameter(group=STOPPING)] = None
    """Stop after so many seconds."""

    seed: Annotated[Seed, Parameter(group=STOPPING)] = 0
    """Start of the random numbers; the same seed gives the same model."""

    jobs: Annotated[Whole | None, Parameter(group=STOPPING)] = None
    """Threads; all cores by default."""

    memory: Annotated[str | None, Parameter(group=MEMORY)] = None
    """What examples may take of memory, as 500MB or 2GB; half of what is free by default. More is read in turns."""

    def budget(self) -> int:
        """Bytes that examples may take."""
        from dotadd.memory import available, parse_bytes

        return available() // 2 if self.memory is None else parse_bytes(self.memory)

    def svm(self, solver: str) -> LinearSVM:
        """The estimator that these options describe; the expression of the features is read at once."""
        from dotadd.estimators import LinearSVM
        from dotadd.features.expression import parse

        return LinearSVM(
            parse(self.features) if self.features else None,
            C=self.cost,
            loss=self.loss,
            solver=solver,
            intercept=self.intercept,
            class_weight=None if self.class_weight == "none" else self.class_weight,
            tol=self.tol,
            max_passes=self.max_passes,
            max_time=self.max_time,
            random_state=self.seed,
            n_jobs=self.jobs,
            memory=self.memory,
        )


def results(svm: LinearSVM) -> list[Result]:
    """The results of the binary problems, one or several."""
    return svm.result_ if isinstance(svm.result_, list) else [svm.result_]


def trained(svm: Any, source: Any, **further: Any) -> bool:
    """Train, and return whether that went to its end. If it was interrupted, there is the model so far; where there is
    none yet, the command ends."""
    try:
        svm.fit(source, **further)
    except KeyboardInterrupt:
        if not hasattr(svm, "model_"):
            raise
        return False
    return True
