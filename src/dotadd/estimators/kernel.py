"""KernelSVM: scikit-learn's face of the kernel machines. Thin: it opens the data, states the binary problems and keeps
the answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from dotadd._util.memory import available, parse_bytes, words
from dotadd._util.threads import thread_count
from dotadd.data.batches import Batch, DenseRows, SparseRows
from dotadd.data.virtual import VirtualBatch
from dotadd.errors import DataError, DotaddError, IndefiniteKernelWarning, NotConvergedWarning
from dotadd.estimators.course import KernelCourse
from dotadd.estimators.notebook import followed
from dotadd.estimators.protocol import Estimator, OneOrEach, column
from dotadd.features.base import FeatureMap, Shape
from dotadd.kernel_svm.expression import named
from dotadd.kernel_svm.gram import Gram, SomeRows
from dotadd.kernel_svm.kernels import (
    FeatureKernel,
    FunctionKernel,
    Kernel,
    Precomputed,
    in_doubt,
    negative_eigenvalue,
    sample,
)
from dotadd.kernel_svm.one_against_one import OneAgainstOne, OnProgress, pairs
from dotadd.kernel_svm.problem import (
    SOLVERS,
    TOLD,
    USUAL,
    KernelProblem,
    KernelProgress,
    KernelResult,
    KernelSettings,
    worst_of,
)
from dotadd.model.kernel import KernelModel
from dotadd.problem.columns import NO_LABELS, ClassWeight, Tally, Targets
from dotadd.problem.survey import usable_rows
from dotadd.solvers.result import Reason
from dotadd.sources import open as open_source
from dotadd.sources.base import Chunk, Source, TooLargeError

REASONS = {
    Reason.CONVERGED: "the optimality conditions hold to the tolerance",
    Reason.PRECISION: "rounding keeps the violation of the optimality conditions above the tolerance",
    Reason.MAX_PASSES: "the limit on steps was reached",
}


class KernelSVM(Estimator):
    """A support vector machine that knows examples by their kernel.

    Minimises 1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (<w, phi(z_i)> + b)) in the feature space of the kernel, with
    C_i = C * class weight * sample weight, until no two examples violate the optimality conditions by more than `tol`.
    Several classes are separated one against one, as LIBSVM does. KernelExamples of zero weight are left out.

    Parameters
    ----------
    kernel : str or Kernel or FeatureMap or callable
        "rbf", "poly", "sigmoid", "linear" or "precomputed", an expression, a map, or a function.
        Any feature map is a kernel, so strings take `Spectrum(8)` or "WeightedDegree(20)". A function of two arrays
        of rows returns the matrix of its values. With "precomputed", X is the kernel matrix of all examples.
    C : float
        The weight of the losses against the size of w.
    of : FeatureMap or str, optional
        The features whose distance "rbf" takes: `KernelSVM("rbf", of="Spectrum(4).normalized()")`. With "scale", gamma
        is then 1 / |phi(z)|^2 on average.
    gamma : float or "scale" or "auto"
        Of "rbf", "poly" and "sigmoid": a number, 1 / (features * variance), or 1 / features.
    degree : int
        The degree of "poly".
    coef0 : float
        What is added to inner products in "poly" and "sigmoid".
    solver : str
        The first of the table of kernel solvers (`dotadd.kernel_svm.problem.SOLVERS`), unless another one is named.
    tol : float
        By how much the optimality conditions may be violated.
    memory : str or int
        What kernel values may take of memory, such as "500MB".
    class_weight : dict or "balanced", optional
        A weight for each class, or "balanced", which gives each class the same in total.
    max_time : float, optional
        Stop after so many seconds; the model so far is kept, and a warning quotes the violation.
    random_state : int or RandomState or Generator, optional
        Where random choices start.
    n_jobs : int, optional
        Threads for training and prediction; all cores by default.

    Attributes
    ----------
    model_ : KernelModel, which predicts, saves itself and needs no estimator
    result_ : KernelResult, or a list with one for each pair of classes where there are several
    support_, support_vectors_, dual_coef_, n_support_, intercept_, classes_, n_iter_, n_features_in_,
    feature_names_in_ : as in scikit-learn's SVC

    Examples
    --------
    >>> from dotadd import KernelSVM
    >>> svm = KernelSVM(gamma=1.0).fit([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0])
    >>> svm.predict([[0.0, 0.1], [1.0, 0.1]])
    array([0, 1])
    """

    model_: KernelModel
    result_: OneOrEach[KernelResult]

    def __init__(
        self,
        kernel: str | Kernel | FeatureMap | Callable[[Any, Any], Any] = "rbf",
        *,
        C: float = 1.0,
        of: FeatureMap | str | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        solver: str = USUAL,
        tol: float = 1e-3,
        memory: str | int = "500MB",
        class_weight: ClassWeight | None = None,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.of = of
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.tol = tol
        self.memory = memory
        self.class_weight = class_weight
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs

    @followed(KernelCourse)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, on_progress: OnProgress | None = None) -> Self:
        """Train on anything `dotadd.open` takes; `y` and `sample_weight` go before the data's own columns.

        `on_progress(progress, k, n)` is told every now and then how far binary problem k of n is. Where it is not
        given, a notebook shows that below the cell; `on_progress=lambda *_: None` is silent.

        Ctrl-C ends training early: the model so far is kept, and then KeyboardInterrupt is raised.
        """
        self._forget()
        kernel = self._checked_kernel()
        source = open_source(X, column(y), sample_weight)
        data = self._loaded(source, kernel)
        tally = Tally()
        tally.note(data)
        targets = tally.targets(self.C, self.class_weight, source.name if data.from_file else data.path)
        seed = self._seed()
        examples = self._examples(kernel, data, targets, seed)
        results = self._solve(examples, len(targets.classes), seed, on_progress)
        self._keep(examples, targets.classes, results, source)
        self._remember_feature_names(X)
        self._warn_unless_converged(results)
        return self

    def _loaded(self, source: Source, kernel: Kernel) -> Chunk:
        """All examples that the kernel can take."""
        budget = available() // 2
        try:
            data = source.load(budget)
            if isinstance(data.batch, VirtualBatch) and int(data.batch.row_bytes().sum()) > budget:
                raise TooLargeError  # kernels want them made, all at once
        except TooLargeError:
            raise DotaddError(
                f"kernel machines need their examples in memory, and {source.name} takes more than {words(budget)}: "
                "train on fewer, or use LinearSVM with a feature map"
            ) from None
        if data.y is None and data.from_file:
            raise DataError(NO_LABELS, data.path_of(0))
        if data.y is None:
            raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None", data.path)
        if isinstance(kernel, FeatureKernel) and isinstance(data.batch.typical(), kernel.takes):
            data = usable_rows(data, kernel.phi.resolve(Shape.of(data.batch)), source)
        return data

    def _examples(self, kernel: Kernel, data: Chunk, targets: Targets, seed: int) -> KernelExamples:
        codes = targets.codes(data)
        cost = targets.cost(data, codes)
        used = np.flatnonzero(cost > 0.0)
        own = isinstance(kernel, FunctionKernel)  # who wrote it need not have thought of threads
        threads = 1 if own else thread_count(self.n_jobs)
        batch: Batch = data.batch.own()
        given = kernel.gram(batch, threads=threads) if isinstance(kernel, Precomputed) else None
        if given is None and len(used) < len(batch):
            batch = batch.take(used)
        kernel = kernel.resolve(batch)
        examples = KernelExamples(kernel, batch, Shape.of(batch), used, codes[used], cost[used], given, threads)
        if in_doubt(kernel):
            some = sample(len(used), seed)
            lowest = negative_eigenvalue(examples.gram(some), used[some])
            if lowest is not None:
                warnings.warn(
                    f"the kernel {kernel!r} is indefinite: a sample of its matrix has the eigenvalue {lowest:.3g}, and "
                    "it is no inner product in any space. What is found need not be the best there is",
                    IndefiniteKernelWarning,
                    stacklevel=4,
                )
        return examples

    def _solve(
        self, examples: KernelExamples, classes: int, seed: int, on_progress: OnProgress | None
    ) -> list[KernelResult]:
        """The answers to all binary problems; those that are not begun when time is up have alpha 0."""
        solve = SOLVERS[self.solver]
        settings = KernelSettings(
            tol=self.tol,
            memory=parse_bytes(self.memory) - examples.nbytes,
            max_time=self.max_time,
            seed=seed,
            threads=examples.threads,
            on_progress=_told(on_progress),
        )
        if classes == 2:
            everyone = np.arange(len(examples.codes))
            return [solve(KernelProblem(examples.gram(everyone), examples.sign(1), examples.cost), settings)]
        order = np.argsort(examples.codes, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(examples.codes, minlength=classes))])
        games = OneAgainstOne(examples.gram(order), first, examples.cost[order], solve, settings, on_progress)
        results = []
        for (i, j), result in zip(pairs(classes), games.solved(), strict=True):
            rows = np.concatenate([order[first[k] : first[k + 1]] for k in (i, j)])
            results.append(replace(result, alpha=result.alpha[np.argsort(rows)]))
        return results

    def _keep(self, examples: KernelExamples, classes: np.ndarray, results: list[KernelResult], source: Source) -> None:
        k, codes = len(classes), examples.codes
        coefficients = np.zeros((k - 1, len(codes)))
        for (i, j), result in zip(pairs(k), results, strict=True):
            rows = examples.of_classes(i, j)
            mine = codes[rows] == i
            signed = result.alpha * np.where(mine == (k > 2), 1.0, -1.0)
            coefficients[j - 1, rows[mine]] = signed[mine]
            coefficients[i, rows[~mine]] = signed[~mine]
        chosen = np.flatnonzero(coefficients.any(axis=0))
        chosen = chosen[np.argsort(codes[chosen], kind="stable")]
        vectors = examples.batch.take(chosen if examples.given is None else chosen[:0])
        worst = worst_of(results)
        training = {
            "rows": len(codes),
            "solver": self.solver,
            "C": self.C,
            "class_weight": self.class_weight if isinstance(self.class_weight, str) else None,
            "tol": self.tol,
            "primal": [result.primal for result in results],
            "dual": [result.dual for result in results],
            "violation": worst.violation,
            "reason": REASONS.get(worst.reason, worst.reason.value),
            "steps": sum(result.steps for result in results),
            "seconds": _total_seconds(results),
        }
        if (transforms := getattr(source, "transforms", None)) is not None:
            training["virtual"] = repr(transforms)
        self.model_ = KernelModel(
            examples.kernel,
            examples.shape,
            vectors,
            examples.used[chosen],
            np.bincount(codes[chosen], minlength=k),
            np.ascontiguousarray(coefficients[:, chosen]),
            np.array([result.intercept for result in results]),
            classes,
            training,
            source.names(),
            [k for k, result in enumerate(results) if not result.trained],
        )
        self.model_.read_as = source.read_as()
        self.result_ = results[0] if len(results) == 1 else results
        self.n_iter_ = np.array([max(1, result.steps) for result in results])
        if examples.shape.n_features is not None:
            self.n_features_in_ = examples.shape.n_features

    @property
    def support_(self) -> np.ndarray:
        """The numbers of the support vectors in the training data, class after class."""
        return self.model_.support

    @property
    def n_support_(self) -> np.ndarray:
        """How many support vectors each class has."""
        return self.model_.counts

    @property
    def dual_coef_(self) -> np.ndarray:
        """y_i alpha_i of each support vector against each other class: an array of shape (classes - 1, vectors)."""
        return self.model_.coefficients

    @property
    def intercept_(self) -> np.ndarray:
        """b of each pair of classes."""
        return self.model_.intercept

    @property
    def support_vectors_(self) -> Any:
        """The support vectors: an array, or a CSR matrix of sparse rows."""
        vectors = self.model_.vectors
        if isinstance(vectors, DenseRows):
            return vectors.values
        if not isinstance(vectors, SparseRows):
            raise AttributeError(f"{vectors.kind} have no array of support vectors; support_ has their numbers")
        from scipy.sparse import csr_matrix

        values = np.ones(len(vectors.indices)) if vectors.values is None else vectors.values
        return csr_matrix((values, vectors.indices, vectors.offsets), shape=(len(vectors), vectors.n_features))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    def _warn_unless_converged(self, results: list[KernelResult]) -> None:
        self._warn_of_untrained(results)
        short = [result for result in results if not result.converged]
        if not short:
            return
        worst = worst_of(short)
        advice = {
            Reason.MAX_TIME: "raise max_time or tol",
            Reason.PRECISION: "raise tol, or scale the features",
            Reason.DIVERGED: "scale the features to values of about 1, or lower C",
        }.get(worst.reason, "fit again to go further")
        several = f" in {len(short)} of {len(results)} pairs of classes" if len(results) > 1 else ""
        warnings.warn(
            f"{REASONS.get(worst.reason, worst.reason.value)} after {worst.steps} steps{several}; the optimality "
            f"conditions are violated by {worst.violation:.2g} (tol {self.tol:g}). The model so far is kept; {advice}.",
            NotConvergedWarning,
            stacklevel=4,
        )

    def _checked_kernel(self) -> Kernel:
        """Refuse a parameter that cannot act."""
        self._require_common()
        self._require(self.solver in SOLVERS, "solver", "one of " + ", ".join(SOLVERS))
        parse_bytes(self.memory)
        kernel = named(self.kernel, self.gamma, self.degree, self.coef0, self.of)
        if isinstance(kernel, FeatureKernel) and kernel.phi.reads:
            raise DotaddError(f"kernel machines read whole examples, and {kernel.phi!r} columns of them: use LinearSVM")
        return kernel


class KernelExamples(NamedTuple):
    """The examples that take part: `batch` has their rows, unless their kernel is `given` for all examples; `used` are
    their numbers among all."""

    kernel: Kernel
    batch: Batch
    shape: Shape
    used: np.ndarray
    codes: np.ndarray
    cost: np.ndarray
    given: Gram | None
    threads: int
    made: Gram | None = None
    """The Gram of all of them, if there is one already."""

    @property
    def nbytes(self) -> int:
        """Bytes of kernel values that are kept for all of training."""
        return 0 if self.made is None or self.made.whole is None else self.made.whole.nbytes

    def of_classes(self, i: int, j: int) -> np.ndarray:
        return np.flatnonzero((self.codes == i) | (self.codes == j))

    def sign(self, positive: int) -> np.ndarray:
        """1 for examples of this class, -1 for others."""
        return np.where(self.codes == positive, 1, -1).astype(np.int8)

    def gram(self, rows: np.ndarray) -> Gram:
        """The Gram of these of the examples, in this order."""
        in_place = np.array_equal(rows, np.arange(len(self.codes)))
        if self.made is not None:
            return self.made if in_place else SomeRows(self.made, rows)
        if self.given is not None:
            everyone = in_place and len(rows) == self.given.shape[0]
            return self.given if everyone else SomeRows(self.given, self.used[rows])
        return self.kernel.gram(self.batch if in_place else self.batch.take(rows), threads=self.threads)


def _told(on_progress: OnProgress | None) -> Callable[[KernelProgress], None] | None:
    """Tells of the only binary problem, if anybody listens."""
    if on_progress is None:
        return None
    return lambda progress: on_progress(progress, 0, 1)


def _total_seconds(results: list[KernelResult]) -> dict[str, float]:
    names = dict.fromkeys(name for result in results for name in result.seconds)
    return {name: sum(result.seconds.get(name, 0.0) for result in results) for name in names}


if KernelSVM.__doc__:  # there is none with python -OO
    KernelSVM.__doc__ = KernelSVM.__doc__.replace("another one is named.", f"another one is named:\n{TOLD}")
