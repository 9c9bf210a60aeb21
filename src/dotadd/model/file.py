"""What every trained classifier has in common: classes, a training record, scores chunk by chunk, and the one file,
which `model/stored.py` reads.

The file is in safetensors format: tensors, and under the key `dotadd` of its metadata a JSON record of everything else.
Loading reads numbers and parses one expression; nothing in the file is executed. A checksum beside the record tells
whether every bit of the file is as it was written.
"""

from __future__ import annotations

import json
import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dotadd._util import tensor_file
from dotadd._util.atomic import replacing
from dotadd._util.threads import row_pieces, thread_count
from dotadd.data.batches import Batch, SparseRows
from dotadd.errors import DataError, DotaddError, ModelError, as_written
from dotadd.features.base import FeatureMap, Shape
from dotadd.model.plotted import Plots
from dotadd.sources.around import by_name
from dotadd.sources.base import Chunk, Source
from dotadd.sources.label_sets import are_sets
from dotadd.sources.table import Layout

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from dotadd.explain.explanation import Explanation
    from dotadd.model.evaluation import Evaluator
    from dotadd.model.probability import Calibration
    from dotadd.model.several_labels import LabelEvaluator
    from dotadd.model.threshold import Purposeful, Threshold

Record = dict[str, Any]  # what JSON can hold, by name
FORMAT = 6  # the newest; each is written where it is enough
# Of several labels a row, and of a threshold, which older versions would not heed; of maps of text, which read Unicode
# since then; a kernel; tensors of phi; none of these.
SEVERAL, CUT, TEXT, KERNEL, STATE, PLAIN = 6, 5, 4, 3, 2, 1
NO_PROBABILITIES = (
    'there are scores and no probabilities: train with loss="logistic", or learn them from rows that training has not '
    "seen by model.calibrate(X, y) (dotadd calibrate)"
)
HANDFUL = 1 << 14  # bytes of rows that are scored at once: a thread would take longer to begin
SEVERAL_GIVEN = "there are several labels a row, and the model was trained on one each"
WEIGHT_TYPES: dict[str, type] = {"F32": np.float32, "F64": np.float64}


class Classifier(Plots):
    """A trained classifier for data of `shape`. `training` records how it was found; `columns` are those of the table
    that it was trained on, if it was one: in other tables they are found by name. `untrained` are the numbers of the
    binary problems that training did not reach, unless it reached none: their answers do not count. `calibration` makes
    probabilities of scores; with the logistic loss there are some without it. Of two classes, a score above 0, or above
    a `threshold`, means the second. `several` says how labels were given where a row may have more than one; then
    classes are labels, and a row has those whose scores are above 0."""

    splits: ClassVar[bool] = True
    """Whether the rows of a chunk are shared among threads here; if not, `_scores` has all threads for itself."""

    def __init__(
        self,
        shape: Shape,
        classes: np.ndarray,
        training: Record | None,
        columns: Layout | None = None,
        untrained: Sequence[int] = (),
        several: str | None = None,
    ) -> None:
        self.several = several
        self.shape, self.classes, self.columns = shape, np.asarray(classes), columns
        self.untrained = tuple(untrained)
        if not all(isinstance(k, int) and 0 <= k < self.problems for k in self.untrained):
            raise ModelError(f"untrained problems {list(self.untrained)} do not fit {self.problems} binary problems")
        if len(self.untrained) == self.problems:
            self.untrained = ()
        self.training: Record = jsonable(training or {})
        self.read_as: Record = {}  # how the data was read that it was trained on: options of `open`
        self.written: dict[str, str] = {}  # version and date, of a model that was loaded from a file
        self.calibration: Calibration | None = None
        self.threshold: Threshold | None = None

    @property
    def two(self) -> bool:
        """Whether it tells two classes apart, by one score."""
        return self.several is None and len(self.classes) == 2

    @property
    def problems(self) -> int:
        """How many binary problems there are."""
        raise NotImplementedError

    def never_predicted(self) -> np.ndarray:
        """The numbers of the classes that no answer speaks for."""
        raise NotImplementedError

    def _scores(self, batch: Batch, threads: int) -> np.ndarray:
        """Scores of a batch that fits."""
        raise NotImplementedError

    def _usable(self, chunk: Chunk, source: Source) -> Chunk:
        """The rows of a chunk that can be scored, in the width that the model was made for."""
        raise NotImplementedError

    def like(self, *, labels: bool) -> Layout | None:
        """The columns to look for in a table, with its labels or without; a prediction needs no labels."""
        columns = self.columns
        return columns and replace(columns, label=(columns.label or "label") if labels else None)

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns whose numbers are the features, where they have names."""
        columns = self.columns
        return columns.features if columns is not None and columns.dense and columns.header else None

    def decision_chunks(
        self, source: Source, *, n_jobs: int | None = None, labels: bool = False
    ) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Chunk after chunk of a source with its scores; rows that cannot be used raise, or are left out.

        With `labels`, a table is looked through for those, too. The next chunk is read while threads work on this one.
        """
        if (like := self.like(labels=labels)) is not None:
            source = by_name(source, like)
        if not labels:
            source = source.unlabelled()
        threads = thread_count(n_jobs)
        workers, each = (threads, 1) if self.splits else (1, threads)
        pool: ThreadPoolExecutor | None = None
        begun: deque[tuple[Chunk, list[Callable[[], np.ndarray]]]] = deque()
        try:
            for chunk in source.chunks():
                chunk = self._usable(chunk, source)
                if chunk.batch.nbytes <= HANDFUL:
                    begun.append((chunk, [partial(self._scores, chunk.batch, each)]))
                else:
                    pool = pool or ThreadPoolExecutor(workers)
                    pieces = [chunk.batch.slice(*piece) for piece in row_pieces(len(chunk), workers)]
                    begun.append((chunk, [pool.submit(self._scores, piece, each).result for piece in pieces]))
                if len(begun) > 1:
                    yield _scored(*begun.popleft())
            for waiting in begun:
                yield _scored(*waiting)
        finally:
            if pool is not None:
                pool.shutdown(cancel_futures=True)

    def decision_function(self, X: object, *, n_jobs: int | None = None) -> np.ndarray:
        """Scores of anything `dotadd.open` takes: (n,) for two classes, (n, classes) for more."""
        from dotadd.sources import open as open_source

        source = open_source(X, like=self.like(labels=False), read_as=self.read_as)
        found = [scores for _, scores in self.decision_chunks(source, n_jobs=n_jobs)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def predict(self, X: object, *, n_jobs: int | None = None) -> Any:
        """Labels of anything `dotadd.open` takes: an array, or where rows may have several, lists of labels or an
        indicator matrix, as they were given for training."""
        return self.labels_of(self.decision_function(X, n_jobs=n_jobs))

    def labels_of(self, scores: np.ndarray) -> Any:
        """The labels that scores speak for."""
        if self.several is None:
            return self.classes[self.winners(scores)]
        from dotadd.model.several_labels import as_given

        return as_given(scores > 0.0, self.classes, self.several)

    def explain(
        self,
        X: object,
        *,
        method: str = "auto",
        target: object = None,
        largest: int = 20,
        rows: int | None = None,
        n_jobs: int | None = None,
    ) -> Explanation:
        """Why the rows of anything `dotadd.open` takes have their scores: what features, letters and columns add.
        What the options mean, `dotadd.model.explanation.explain` tells."""
        from dotadd.model.explanation import explain

        return explain(self, X, method=method, target=target, largest=largest, rows=rows, n_jobs=n_jobs)

    def _plotted(self, X: object, y: object) -> tuple[Classifier, int | None]:
        return self, None

    def _repr_html_(self) -> str:
        from dotadd._util.wording import card

        told = {name: self.training.get(name) for name in ("rows", "solver", "C", "loss", "gap", "violation", "reason")}
        known = {name: value for name, value in told.items() if value is not None}
        inside = {name: repr(getattr(self, name)) for name in ("phi", "kernel") if hasattr(self, name)}
        return card(
            type(self).__name__, inside | {"classes": ", ".join(map(as_written, self.classes.tolist()))} | known
        )

    @property
    def probability(self) -> Calibration | None:
        """What makes probabilities of scores, where there are any."""
        if self.calibration is None and self.training.get("loss") == "logistic":
            from dotadd.model.probability import Calibration

            return Calibration.of_logistic(1 if self.two else len(self.classes))
        return self.calibration

    @property
    def predict_proba(self) -> Callable[..., np.ndarray]:
        """predict_proba(X, n_jobs=None): probabilities of shape (rows, classes) of anything `dotadd.open` takes. Only
        models of the logistic loss and those with a `calibration` have it, as scikit-learn would have it."""
        if self.probability is None:
            raise AttributeError(NO_PROBABILITIES)
        return self._predict_proba

    @property
    def predict_log_proba(self) -> Callable[..., np.ndarray]:
        """Logarithms of `predict_proba`, where there is one."""
        predict_proba = self.predict_proba

        def logarithms(X: object, *, n_jobs: int | None = None) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.log(predict_proba(X, n_jobs=n_jobs))

        return logarithms

    def _predict_proba(self, X: object, *, n_jobs: int | None = None) -> np.ndarray:
        return self.probabilities(self.decision_function(X, n_jobs=n_jobs))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The probabilities that scores stand for, where there are any; where rows have several labels, each label has
        its own."""
        if (curves := self.probability) is None:
            raise DotaddError(NO_PROBABILITIES)
        return curves.probabilities(scores, together=self.several is None)

    def score(self, X: object, y: object = None, sample_weight: object = None, *, n_jobs: int | None = None) -> float:
        """Accuracy; where rows have several labels, all of them have to be right. Labels and weights that are not given
        come from X, as a file or another source has them."""
        from dotadd.model.evaluation import Evaluator  # training has no need of it

        if self.several is not None:
            from dotadd.model.several_labels import LabelEvaluator, require_sets

            given = None if y is None else require_sets(y)
            several = LabelEvaluator(len(self.classes))
            for truth, scores, weight in self.labelled(X, given, sample_weight, n_jobs):
                several.see_sets(truth, scores > 0.0, self.classes, weight, strange=True)
            return several.finish().exact
        found = Evaluator(self.classes, areas=False)
        for truth, scores, weight in self.labelled(X, y, sample_weight, n_jobs):
            found.see(truth, scores, self.classes[self.winners(scores)], weight)
        return found.accuracy

    def calibrate(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        method: str | None = "sigmoid",
        threshold: Purposeful | None = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Learn probabilities ("sigmoid", "isotonic" or None), and a threshold for a purpose such as "precision=0.99",
        from rows that training has not seen. Labels and weights that are not given come from X."""
        from dotadd.model.probability import calibrate
        from dotadd.model.threshold import choose_threshold

        if self.several is not None:
            raise DotaddError('several labels a row are not calibrated: train with loss="logistic" for probabilities')
        seen = list(self.labelled(X, y, sample_weight, n_jobs))
        if not seen:
            raise DataError("has no rows that can be used")
        truth, scores = (np.concatenate([np.asarray(one[part]) for one in seen]) for part in (0, 1))
        weight = np.concatenate([np.ones(len(one)) if each is None else each for one, _, each in seen])
        calibration = None if method is None else calibrate(scores, truth, self.classes, method=method, weight=weight)
        if threshold is not None:
            self.threshold = choose_threshold(scores, truth, self.classes, threshold, weight=weight)
        self.calibration = calibration or self.calibration
        return self

    def labelled(
        self, X: object, y: object, sample_weight: object, n_jobs: int | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Labels, scores and weights of rows, chunk by chunk; the data's own, where none are given."""
        from dotadd.sources import open as open_source

        labels, weights = (None if given is None else np.asarray(given) for given in (y, sample_weight))
        source = open_source(X, like=self.like(labels=y is None), read_as=self.read_as)
        seen = 0
        for chunk, scores in self.decision_chunks(source, n_jobs=n_jobs, labels=y is None):
            rows = slice(seen, seen + len(chunk))
            truth = chunk.y if labels is None else labels[rows]
            if truth is None:
                raise DataError("has no labels to score against", source.name)
            if self.several is None and are_sets(truth):
                raise DataError(SEVERAL_GIVEN, source.name)
            yield np.asarray(truth), scores, chunk.weight if weights is None else weights[rows]
            seen += len(chunk)
        for what, given in (("labels", labels), ("weights", weights)):
            if given is not None and len(given) != seen:
                raise DataError(f"{seen:,} rows and {len(given):,} {what} do not pair up", source.name)

    def evaluated(
        self, source: Source, *, n_jobs: int | None = None, seen: Callable[[Chunk, np.ndarray], None] | None = None
    ) -> Evaluator | LabelEvaluator:
        """What there is to measure of all rows of a source, which must have labels; a chunk of it is in memory, and is
        shown with its scores to `seen`."""
        from dotadd.model.evaluation import Evaluator

        if self.several is not None:
            from dotadd.model.several_labels import evaluated

            return evaluated(self, source, n_jobs, seen)
        found, curves = Evaluator(self.classes), self.probability
        for chunk, scores in self.decision_chunks(source, n_jobs=n_jobs, labels=True):
            if chunk.y is None:
                raise DataError("there are no labels to compare with; name their column with --label", chunk.path)
            if are_sets(chunk.y):
                raise DataError(SEVERAL_GIVEN, source.name)
            strange = np.flatnonzero(~np.isin(chunk.y, self.classes))
            if len(strange):
                label = as_written(np.asarray(chunk.y)[strange[0]].item())
                known = ", ".join(map(as_written, self.classes.tolist()))
                raise chunk.error(int(strange[0]), f"label {label} is none of the model's classes ({known})")
            sure = None if curves is None else curves.probabilities(scores)
            found.see(chunk.y, scores, self.classes[self.winners(scores)], chunk.weight, sure)
            if seen is not None:
                seen(chunk, scores)
        return found

    def fit(self, X: object, y: object = None, **more: object) -> None:
        """A model is trained already, and refuses; to scikit-learn, nothing is a classifier that has no `fit`."""
        raise DotaddError("a model is trained already: fit a LinearSVM or KernelSVM, or wrap it in a FrozenEstimator")

    @property
    def classes_(self) -> np.ndarray:
        """The classes, under the name that scikit-learn looks for."""
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        return classifier_tags()

    def decisive(self) -> Record:
        """What makes probabilities and labels of scores, as plain data; None where it is not there."""
        curves = self.probability
        return {
            "probability": None if curves is None else curves.method if self.calibration else "logistic",
            "threshold": None if self.threshold is None else jsonable(self.threshold.to_dict()),
        }

    def winners(self, scores: np.ndarray) -> np.ndarray:
        """Which class each score, or each row of scores, speaks for: its number in `classes`."""
        return winners(scores, 0.0 if self.threshold is None else self.threshold.value)

    def fitting(self, chunk: Chunk) -> Chunk:
        """The chunk in the width that the model was made for.

        Sparse rows may be narrower. A file tells its width only by the largest index it holds, so features that the
        training data did not have are dropped from it, as in LIBLINEAR; arrays know their width, and it must fit.
        """
        batch, expected = chunk.batch, self.shape.n_features
        if expected is None or (found := Shape.of(batch).n_features) is None or found == expected:
            return chunk
        sparse = isinstance(batch, SparseRows)
        if sparse and found < expected:
            return chunk
        if isinstance(batch, SparseRows) and chunk.from_file:
            return replace(chunk, batch=_without_features_from(batch, expected))
        where = f"{chunk.path}: " if chunk.path else ""
        if self.shape.size is not None and (size := Shape.of(batch).size) is not None:
            (a, b), (c, d) = size, self.shape.size
            raise ModelError(f"{where}images of {a} x {b} pixels, and the model was made for {c} x {d}")
        raise ModelError(f"{where}X has {found} features, but Model is expecting {expected} features as input")

    def _write(
        self, path: str | os.PathLike[str], number: int, record: Record, tensors: Mapping[str, np.ndarray]
    ) -> None:
        """The file in format `number`, or a later one that it needs, with a record and tensors beside what all models
        have; it appears whole or not at all."""
        from dotadd._version import __version__
        from dotadd.features.expression import reads_text

        number = (
            SEVERAL
            if self.several is not None
            else TEXT
            if any(reads_text(str(value)) for value in record.values())
            else number
        )
        header = {
            "format": number if self.threshold is None else CUT,
            "version": __version__,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            **record,
            "shape": self.shape.to_dict(),
            "classes": _classes_to_json(self.classes),
            **({} if self.several is None else {"several": self.several}),
            **({} if self.columns is None else {"columns": self.columns.to_dict()}),
            **({"untrained": self.untrained} if self.untrained else {}),
            **({"read_as": jsonable(self.read_as)} if self.read_as else {}),
            "training": self.training,
        }
        tensors = dict(tensors)
        if self.threshold is not None:
            header["threshold"] = jsonable(self.threshold.to_dict())
        if self.calibration is not None:
            header["calibration"] = {"method": self.calibration.method}
            tensors |= {f"calibration.{name}": array for name, array in self.calibration.tensors().items()}
        with replacing(path) as temporary:
            tensor_file.write(temporary, tensors, {"dotadd": json.dumps(header, allow_nan=False)})


def winners(scores: np.ndarray, threshold: float = 0.0) -> np.ndarray:
    """The number of the class that each score, or each row of scores, speaks for."""
    return (scores > threshold).astype(np.int64) if scores.ndim == 1 else np.argmax(scores, axis=1)


def classifier_tags() -> Tags:
    """What scikit-learn asks of a classifier; only then is it imported."""
    from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

    return Tags(
        estimator_type="classifier",
        target_tags=TargetTags(required=True),
        classifier_tags=ClassifierTags(),
        input_tags=InputTags(sparse=True, string=True, three_d_array=True),
    )


def state_tensors(phi: FeatureMap) -> dict[str, np.ndarray]:
    """What a map has learned, as the file names it."""
    return {f"phi.{name}": array for name, array in phi.state().items()}


def _without_features_from(batch: SparseRows, stop: int) -> SparseRows:
    span = slice(int(batch.offsets[0]), int(batch.offsets[-1]))
    known = batch.indices[span] < stop
    before = np.zeros(len(known) + 1, np.int64)
    np.cumsum(known, out=before[1:])
    values = None if batch.values is None else batch.values[span][known]
    offsets = before[batch.offsets - batch.offsets[0]]
    return SparseRows(offsets, batch.indices[span][known], values, stop, distinct=batch.distinct)


def _scored(chunk: Chunk, scores: list[Callable[[], np.ndarray]]) -> tuple[Chunk, np.ndarray]:
    """A chunk with the scores that are waited for, or computed now."""
    return chunk, scores[0]() if len(scores) == 1 else np.concatenate([piece() for piece in scores])


def jsonable(record: Mapping[str, object]) -> Record:
    """The same as JSON can say it: NumPy numbers and enums by value, numbers that are not finite as null."""
    return {str(key): _jsonable(value) for key, value in record.items()}


def _jsonable(value: object) -> object:
    if isinstance(value, Mapping):
        return jsonable(value)
    if isinstance(value, Enum):
        return _jsonable(value.value)
    if isinstance(value, np.ndarray | np.generic):
        return _jsonable(value.tolist())
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _classes_to_json(classes: np.ndarray) -> Record:
    values = classes.tolist()
    if classes.dtype.kind not in "biufUO" or not all(isinstance(value, bool | int | float | str) for value in values):
        raise ModelError("labels have to be numbers or strings to be kept in a model file")
    return {"dtype": classes.dtype.name if classes.dtype.kind in "biuf" else classes.dtype.kind, "values": values}
