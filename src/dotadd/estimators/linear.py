"""LinearSVM: scikit-learn's face of the library. Thin: it opens the data, states the problem and keeps the answer."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dotadd._util.memory import Budget, parse_bytes, words
from dotadd.core.losses import Loss
from dotadd.errors import DotaddError, NotConvergedWarning, StreamingWarning, UnusedColumnsWarning
from dotadd.estimators.course import Course
from dotadd.estimators.fitting import Found, How, OnProgress, memory_for, on_disk, on_examples, on_parts
from dotadd.estimators.notebook import followed
from dotadd.estimators.protocol import Estimator, OneOrEach, column, columns_read, whole
from dotadd.features.base import FeatureMap
from dotadd.features.on_demand import OnDemand
from dotadd.model.linear import Model
from dotadd.problem.columns import ClassWeight
from dotadd.problem.lengths import advice_of
from dotadd.problem.problem import Intercept
from dotadd.solvers.checkpoint import Checkpoint, Unasked
from dotadd.solvers.result import Reason, Result, worst_of
from dotadd.solvers.table import SOLVERS, TOLD, Needs, that_need
from dotadd.sources import open as open_source
from dotadd.sources.base import TooLargeError
from dotadd.sources.label_sets import LISTS, given_sets

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from dotadd.estimators.update import Update

ADVICE = {
    Reason.MAX_PASSES: "raise max_passes, scale the features, or lower C",
    Reason.MAX_TIME: "raise max_time or tol",
    Reason.PRECISION: 'raise tol, scale the features, or use dtype="float64"',
    Reason.DIVERGED: "scale the features to values of about 1, or lower C",
    Reason.STALLED: "scale the features, or use another solver",
    Reason.AVERAGED: 'use solver="cocoa" to come closer',
}
"""What to do where training ended too early."""


class LinearSVM(Estimator):
    """A linear support vector machine in the feature space of `phi`, which need not be stored.

    Minimises 1/2 |w|^2 + sum_i C_i loss(y_i (<w, phi(z_i)> + b)) with C_i = C * class weight * sample weight, to a
    relative duality gap of `tol`. Several classes are separated one against the rest.

    Parameters
    ----------
    phi : FeatureMap or str, optional
        The feature map, or the expression that makes it. By default the numbers themselves, `Linear()`.
    C : float
        The weight of the losses against the size of w.
    loss : {"hinge", "squared_hinge", "logistic"}
        What a row costs that is on the wrong side or near the border. With "logistic", scores are logarithms of odds.
    solver : str
        "auto" chooses by loss, C and the shape of the data, and `result_.why` says why. Each solver proves how good its
        answer is by the duality gap, but for those that stop when the objective stalls. Others can be named:
    intercept : {"regularized", "free", "none"}
        One more weight on a constant feature, free of any penalty, or absent.
    class_weight : dict or "balanced", optional
        A weight for each class, or "balanced", which gives each class the same in total.
    tol : float
        The relative duality gap to reach.
    memory : str or int, optional
        What examples may take of memory, such as "2GB", with what is kept of their features and what solvers collect;
        by default half of what is free. Files that take more are not loaded but read again and again while training
        goes on ("stream").
    keep : bool
        Whether features that take longer to make than to read, such as words, are kept as far as `memory` has room;
        otherwise each pass makes them anew. `result_` tells how many rows were kept.
    max_passes : int
        Stop after so many passes over the data; the model so far is kept, and a warning quotes its gap.
    max_time : float, optional
        The same after so many seconds.
    random_state : int or RandomState or Generator, optional
        Where the random order of examples starts.
    n_jobs : int, optional
        Threads for training and prediction; all cores by default.
    dtype : {"float32", "float64"}
        How weights are stored. Sums are always in float64.

    Attributes
    ----------
    model_ : Model, which predicts, saves itself and needs no estimator
    result_ : Result, or a list with one for each class, or label, where there are several
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from dotadd import LinearSVM, Spectrum
    >>> svm = LinearSVM(Spectrum(2)).fit(["ACACAC", "GTGTGT", "ACACAA", "GTGTTT"], [1, -1, 1, -1])
    >>> svm.predict(["ACAC", "GTTT"])
    array([ 1, -1])
    """

    model_: Model
    result_: OneOrEach[Result]

    def __init__(
        self,
        phi: FeatureMap | str | None = None,
        *,
        C: float = 1.0,
        loss: str = "hinge",
        solver: str = "auto",
        intercept: str = "regularized",
        class_weight: ClassWeight | None = None,
        tol: float = 1e-3,
        memory: str | int | None = None,
        keep: bool = True,
        max_passes: int = 1000,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        dtype: str = "float32",
    ) -> None:
        self.phi = phi
        self.C = C
        self.loss = loss
        self.solver = solver
        self.intercept = intercept
        self.class_weight = class_weight
        self.tol = tol
        self.memory = memory
        self.keep = keep
        self.max_passes = max_passes
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.dtype = dtype

    @followed(Course)
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        start: Result | list[Result] | Model | LinearSVM | None = None,
        stands_for: float | None = None,
        new_classes: bool = True,
        on_progress: OnProgress | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float | None = None,
        resume: bool = False,
        keep_checkpoint: bool = False,
        keep_cache: bool = True,
        announce: Callable[[str], None] | None = None,
        engine: Any = None,
    ) -> Self:
        """Train on anything `dotadd.open` takes; `y` and `sample_weight` go before the data's own columns.

        Rows may have several labels: `y` is then lists, sets or tuples of labels, or an indicator matrix (0 and 1, a
        column a label), or the data has them (`dotadd.open`: lists, or a separator). Each label is a binary problem,
        and `predict` answers with lists of labels, or with indicators. A label that all rows have, or none, is
        predicted always, or never.

        `start` is the `result_` of an earlier fit on the same examples to start from (another C, another tolerance),
        which is a matter of speed. Or it is an earlier model (a `Model`, or the LinearSVM that has it) that is to be
        updated with *other* examples, its own being gone: then 1/2 |w - w0|^2 s + sum_i C_i loss(...) is minimised over
        the new ones, where s grows with the number of rows that the model `stands_for`; by default those that it was
        trained on, in all its updates. Fewer make it count less, and 0 leaves a plain fit. Its features stay as they
        are, with all that they have learned. With `new_classes`, labels that it does not know become new classes;
        otherwise they are refused. Probabilities and a threshold have to be learned again (`calibrate`).
        `on_progress(progress, k, n)` is told after each pass, and within long ones, how far binary problem k of n is.
        Where it is not given, a notebook shows that below the cell, and other places show nothing;
        `on_progress=lambda *_: None` is silent.

        Ctrl-C ends training early: the model so far is kept (and a checkpoint written, if there is one), and then
        KeyboardInterrupt is raised. The same if `on_progress` raises it.

        Every `checkpoint_every` seconds (60) the state of training is written to the file `checkpoint`. With `resume`
        training goes on from there, by the solver that wrote it and with the `memory` it had unless told otherwise. A
        solver that writes none refuses to. No two runs have one at a time. Training that is done removes it, unless
        `keep_checkpoint`, for those who want to save the model first.

        Text larger than `memory` is first copied to an Arrow file beside it, which is removed at the end unless
        `keep_cache`. announce(line) is told what happens to files; by default it is a warning.

        `engine` is a Dask client whose workers read and train on parts of the data, given as names or patterns of files
        that they see. `memory` is what examples may take on each of them; checkpoints work as above, in any case.
        """
        update, earlier = self._beginning(start, stands_for, new_classes)
        self._forget()
        self._check_parameters()
        if update is not None:
            phi: FeatureMap | str | None = update.map_for(self.phi)
        else:
            phi = self.phi if self.phi is not None or engine is not None else self._proposed(X, announce)
        where = Checkpoint.asked(checkpoint, checkpoint_every, resume, keep_checkpoint)
        held = nullcontext() if where is None else where.held()
        given = given_sets(y) if update is None else None
        several, width = (None if update else LISTS, None) if given is None else (given.kind, given.width)
        how = How(phi, on_progress, announce, where, resume, earlier, keep_cache, several, width, update)
        if engine is not None:
            if y is not None or sample_weight is not None or start is not None:
                raise DotaddError("with engine=, labels and weights are read from the files, and start= has no meaning")
            if not keep_cache:
                raise DotaddError("with engine=, copies stay with the workers: keep_cache=False has no meaning")
            with held:
                self._keep(on_parts(self, X, engine, how))
                self._forget_checkpoint(where, keep_checkpoint, engine)
            self._warn_unless_converged()
            return self
        if resume and earlier is not None:
            raise DotaddError("resume= goes on from the checkpoint, and start= from an earlier fit: give one of them")
        if self.solver in that_need(Needs.PARTS):
            raise DotaddError(f"solver={self.solver!r} trains on parts of the data: give engine= (--workers)")
        solver = how.solver(self.solver)
        labels = column(y) if given is None else given.y
        if update is None:
            source = open_source(X, labels, sample_weight, like=columns_read(phi))
        else:
            model = update.model
            like = model.like(labels=y is None)
            source = open_source(X, labels, sample_weight, like=like, read_as=model.read_as)
        budget = memory_for(self, how)
        source.bound(budget)
        data = None
        streams = solver is not None and solver.needs is Needs.PIECES  # what was streamed goes on so
        if not streams:
            with suppress(TooLargeError):  # and forget it: the traceback would keep what was loaded
                data = source.load(budget)
        if data is None and ((solver is not None and solver.needs is Needs.ROWS) or earlier is not None):
            what = "start= goes" if solver is None or streams else f"solver={solver.name!r} works"
            raise DotaddError(
                f"{what} with examples in memory, and {source.name} takes more than {words(budget)}: "
                'use solver="stream", or raise memory'
            )
        if data is not None and not resume and (where is None or isinstance(where.path, Unasked)):
            held = nullcontext()  # nothing is written there
            keep_checkpoint = True
        with held:
            if data is not None:
                found = on_examples(self, source, data, Budget(budget), how)
            else:
                say = announce or (lambda line: warnings.warn(line, StreamingWarning, stacklevel=5))
                found = on_disk(self, source, budget, how, say)
            self._keep(found, update)
            self._forget_checkpoint(where, keep_checkpoint)
        self._remember_feature_names(X)
        self._warn_unless_converged()
        return self

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _forget_checkpoint(self, where: Checkpoint | None, keep: bool, engine: Any = None) -> None:
        """Remove the checkpoint of training that is done, and what parts have of it, unless it is to be kept."""
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        if where is None or keep or any(result.reason.goes_on for result in results):
            return
        where.remove()
        if engine is not None:
            from dotadd.cluster.fitting import forget_checkpoint

            forget_checkpoint(engine, where.path)

    def _beginning(
        self, start: Result | list[Result] | Model | LinearSVM | None, stands_for: float | None, new_classes: bool
    ) -> tuple[Update | None, list[Result] | None]:
        """What `start` is: an earlier model to update, or results to start from; or neither."""
        self._require(isinstance(new_classes, bool), "new_classes", "True or False")
        if start is not None and not isinstance(start, Result | list):
            from dotadd.estimators.update import Update

            return Update.of(getattr(start, "model_", start), stands_for, new_classes), None
        if stands_for is not None or not new_classes:
            raise DotaddError("stands_for= and new_classes= say how a model is updated: give it as start=")
        return None, [start] if isinstance(start, Result) else start

    def _proposed(self, X: Any, announce: Callable[[str], None] | None) -> FeatureMap | None:
        """The map for a table of which nobody has said what to make of it, which is told; None where none is needed."""
        from dotadd.estimators.proposal import propose
        from dotadd.features.expression import parse

        proposal = propose(X)
        if proposal is None:
            return None
        say = announce or (lambda line: warnings.warn(line, UnusedColumnsWarning, stacklevel=6))
        say(str(proposal))
        return parse(proposal.expression)

    @property
    def coef_(self) -> np.ndarray:
        """w: a row of weights for each class, or label; one for two classes."""
        return self.model_.w

    @property
    def intercept_(self) -> np.ndarray:
        """b of each row of weights."""
        return self.model_.intercept

    def _keep(self, found: Found, update: Update | None = None) -> None:
        """Make the model and the attributes of what a fit has found."""
        phi, results, source = found.phi, found.results, found.source
        phi = phi.phi if isinstance(phi, OnDemand) else phi  # predictions are made for examples as they are
        results = [replace(one, solver=found.solver, why=found.why) for one in results]
        w = results[0].w[None] if len(results) == 1 else np.stack([result.w for result in results])
        results = [replace(result, w=row) for result, row in zip(results, w, strict=True)]  # one copy of the weights
        worst = worst_of(results)
        if not all(result.usable for result in results):
            raise DotaddError(
                f"training diverged: with C = {self.C:g} the weights became too large to be computed with; "
                "scale the features to values of about 1, or use .normalized()"
            )
        training = {
            "rows": found.rows,
            "solver": worst.solver,
            "why": worst.why,
            "C": self.C,
            "loss": self.loss,
            "intercept": self.intercept,
            "class_weight": self.class_weight if isinstance(self.class_weight, str) else None,
            "tol": self.tol,
            "primal": [result.primal for result in results],
            "dual": [result.dual for result in results],
            "gap": worst.gap,
            "reason": worst.reason,
            "passes": max(result.passes for result in results),
            "seconds": worst.seconds,
            "length_spread": found.spread,
            "scale_spread": found.scales,
        }
        if update is not None and found.strength is not None:
            training |= update.record(found.rows, found.strength)
        if (transforms := getattr(source, "transforms", None)) is not None:
            training["virtual"] = repr(transforms)
        untrained = [k for k, result in enumerate(results) if not result.trained]
        b = np.array([result.intercept for result in results])
        self.model_ = Model(phi, found.shape, w, b, found.classes, training, found.names, untrained, found.several)
        self.model_.read_as = {} if source is None else source.read_as()
        self.result_ = results[0] if len(results) == 1 and found.several is None else results
        self.n_iter_ = max(1, max(result.passes for result in results))
        if found.shape.n_features is not None:
            self.n_features_in_ = found.shape.n_features

    def _warn_unless_converged(self) -> None:
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        self._warn_of_untrained(results)
        short = [result for result in results if not result.converged]
        if not short:
            return
        worst = worst_of(short)
        gap = "not measured" if worst.gap is None or np.isnan(worst.gap) else f"{worst.gap:.2g}"
        advice = ADVICE.get(worst.reason, "fit again with start=result_ to go on")
        told = advice_of(self.model_.training)
        advice = f"{advice}; {told}" if told else advice
        warnings.warn(
            f"{worst.reason.value} after {worst.passes} passes; the relative duality gap is {gap} (tol {self.tol:g}). "
            f"The model so far is kept; {advice}.",
            NotConvergedWarning,
            stacklevel=4,
        )

    def _check_parameters(self) -> None:
        """Refuse a parameter that cannot act."""
        self._require_common()
        require = self._require
        require(self.phi is None or isinstance(self.phi, FeatureMap | str), "phi", "a FeatureMap or an expression")
        losses = [loss.name.lower() for loss in Loss]
        require(self.loss in losses, "loss", "one of " + ", ".join(losses))
        solvers = ["auto", *SOLVERS]
        require(self.solver in solvers, "solver", "one of " + ", ".join(solvers))
        intercepts = [intercept.value for intercept in Intercept]
        require(self.intercept in intercepts, "intercept", "one of " + ", ".join(intercepts))
        require(whole(self.max_passes), "max_passes", "a positive whole number")
        require(self.dtype in ("float32", "float64"), "dtype", '"float32" or "float64"')
        require(isinstance(self.keep, bool | np.bool_), "keep", "True or False")
        if self.memory is not None:
            parse_bytes(self.memory)


if LinearSVM.__doc__:  # there is none with python -OO
    LinearSVM.__doc__ = LinearSVM.__doc__.replace("Others can be named:", f"Others can be named:\n{TOLD}")
