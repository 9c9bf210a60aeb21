"""KernelModel: a kernel, support vectors, their coefficients, and how they were found.

Several classes are told apart one against one, as LIBSVM does. Support vectors stand in the order of their classes, and
each has a coefficient against every other class: in row j - 1 against a later class j, in row j against an earlier one.
In the decision between classes i < j, positive means i; of two classes alone, positive means the second.

`model/file.py` describes the file; for these models it holds the tensors `coefficients`, `intercept`, `support` and
`counts`, the rows of the support vectors as tensors `vectors.*`, what a map has learned as `phi.*`, and the kernel's
expression.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from dotadd._util.memory import Budget
from dotadd._util.threads import one_blas_thread
from dotadd.data.batches import Batch, DenseRows, Images, SparseRows, Strings
from dotadd.data.lattices import Lattices
from dotadd.errors import DotaddError, ModelError
from dotadd.features.base import FeatureMap, Shape, require_kind
from dotadd.kernel_svm.feature_rbf import FeatureRBF
from dotadd.kernel_svm.gkm_kernel import GkmRBF
from dotadd.kernel_svm.gram import Gram
from dotadd.kernel_svm.kernels import FeatureKernel, Kernel, LinearKernel, Precomputed
from dotadd.kernel_svm.one_against_one import pairs
from dotadd.model.file import KERNEL, Classifier, Record, state_tensors
from dotadd.model.stored import Stored
from dotadd.problem.examples import InMemory
from dotadd.problem.survey import usable_rows
from dotadd.sources.base import Chunk, Source
from dotadd.sources.table import Layout

LATTICES = ("state_offsets", "arc_offsets", "labels", "targets", "weights", "finals")
COLUMNS = 1 << 12  # examples that are scored at a time where kernel values are computed
KEPT_SLOTS = 1 << 23  # of all w that a model keeps beside its support vectors: 64 MB
KEPT_BYTES, BYTES_A_NONZERO = 1 << 26, 8  # of phi of support vectors, where the kernel has no w
TILE = 1 << 22  # kernel values at a time: 16 MB of float32, and twice as much for sums in float64


class _Weights(NamedTuple):
    """A map, and a w for each pair of classes."""

    phi: FeatureMap
    each: list[np.ndarray]


class KernelModel(Classifier):
    """A trained kernel machine.

    `kernel` is resolved, `vectors` are the support vectors and `support` their numbers in the training data, of which
    `counts` are of each class. Where the kernel was precomputed there are numbers alone, and `vectors` is empty.
    """

    splits: ClassVar[bool] = False

    def __init__(
        self,
        kernel: Kernel,
        shape: Shape,
        vectors: Batch,
        support: np.ndarray,
        counts: np.ndarray,
        coefficients: np.ndarray,
        intercept: np.ndarray,
        classes: np.ndarray,
        training: Record | None = None,
        columns: Layout | None = None,
        untrained: Sequence[int] = (),
    ) -> None:
        super().__init__(shape, classes, training, columns, untrained)
        self.kernel, self.vectors, self.support, self.counts = kernel, vectors, support, counts
        self.coefficients, self.intercept = coefficients, intercept
        k, given = len(self.classes), isinstance(kernel, Precomputed)
        if (
            k < 2
            or coefficients.shape != (k - 1, len(support))
            or intercept.shape != (k * (k - 1) // 2,)
            or counts.shape != (k,)
            or (counts < 0).any()
            or counts.sum() != len(support)
            or len(vectors) != (0 if given else len(support))
            or (given and not ((support >= 0) & (support < (shape.n_features or 0))).all())
        ):
            raise ModelError(
                f"{k} classes and {len(support)} support vectors do not fit coefficients of shape "
                f"{coefficients.shape}, an intercept of shape {intercept.shape} and {len(vectors)} {vectors.kind}"
            )
        self._rows = np.asarray(support) if given else np.arange(len(support))  # of the Gram with other examples
        self._first = np.concatenate([[0], np.cumsum(counts)])  # the first support vector of each class
        self._kept: _Weights | None = None
        self._expanded: InMemory | None = None

    def __getstate__(self) -> Record:
        return self.__dict__ | {"_kept": None, "_expanded": None}  # made again where they are needed

    @property
    def problems(self) -> int:
        return len(self.classes) * (len(self.classes) - 1) // 2

    def never_predicted(self) -> np.ndarray:
        voting = [pair for k, pair in enumerate(pairs(len(self.classes))) if k not in self.untrained]
        return np.setdiff1d(np.arange(len(self.classes)), voting)

    def winners(self, scores: np.ndarray) -> np.ndarray:
        """Which class has the most votes; of several with as many, the first, as in LIBSVM."""
        return super().winners(counted(scores))

    def _usable(self, chunk: Chunk, source: Source) -> Chunk:
        chunk = self.fitting(replace(chunk, batch=chunk.batch.own()))
        if not isinstance(self.kernel, FeatureKernel | GkmRBF):
            return chunk
        require_kind(self.kernel.phi, chunk.batch, chunk.path)
        return usable_rows(chunk, self.kernel.phi, source)

    def _scores(self, batch: Batch, threads: int) -> np.ndarray:
        decisions = self.decisions(batch, threads)
        if len(decisions) == 1:
            return decisions[0]
        decisions[list(self.untrained)] = np.nan  # they speak for neither
        scores = votes(decisions, len(self.classes))
        scores[:, self.never_predicted()] = -np.inf
        return scores

    def decisions(self, batch: Batch, threads: int = 1) -> np.ndarray:
        """The outputs of all binary problems: an array of shape (pairs, rows)."""
        out = np.repeat(self.intercept[:, None], len(batch), axis=1)
        if len(self.support) == 0:
            return out
        if (ws := self._weights(threads)) is not None:
            for sums, found in zip(out, InMemory(ws.phi, batch, threads=threads).dot(ws.each), strict=True):
                sums += found
            return out
        at_once = max(1, len(batch)) if type(self.kernel) in (LinearKernel, FeatureKernel) else COLUMNS
        with one_blas_thread():
            for first in range(0, len(batch), at_once):
                some = batch.slice(first, min(first + at_once, len(batch)))
                gram = self._gram(some, threads)
                add = self._add_linadd if gram.linadd else self._add_blocks
                add(gram, out[:, first : first + at_once])
        return out

    def _gram(self, batch: Batch, threads: int) -> Gram:
        """The kernel between the support vectors and these rows."""
        if isinstance(self.kernel, FeatureRBF) and (rows := self._expansion(self.kernel.phi, threads)) is not None:
            return self.kernel.between(rows, InMemory(self.kernel.phi, batch, threads=threads), threads)
        return self.kernel.gram(self.vectors, batch, threads=threads)

    def _expansion(self, phi: FeatureMap, threads: int) -> InMemory | None:
        """phi of the support vectors. It is made once, and kept if it takes little memory."""
        if self._expanded is None:
            nonzeros = np.broadcast_to(phi.bound(self.vectors), len(self.vectors)).sum(dtype=np.int64)
            if BYTES_A_NONZERO * nonzeros > KEPT_BYTES:
                return None
            rows = InMemory(phi, self.vectors, threads=threads, budget=Budget(KEPT_BYTES))
            rows.make_kept()
            rows.hold_norms()
            self._expanded = rows  # when it is complete: other threads may ask, too
        return self._expanded

    def _add_linadd(self, gram: Gram, out: np.ndarray) -> None:
        """A w for each pair of classes, and no kernel value; examples are expanded once for several w."""
        gram.add_sums(self._factors(gram.shape[0]), out)

    def _weights(self, threads: int) -> _Weights | None:
        """The w of each pair of classes where the kernel is a map. They are made once, and kept if they take little
        memory: for one example, making them would be nearly all of the work."""
        if self._kept is None and type(self.kernel) is FeatureKernel:
            phi = self.kernel.phi
            if phi.dim * len(self.intercept) > KEPT_SLOTS:
                return None
            each = [np.zeros(phi.dim) for _ in self.intercept]
            rows = InMemory(phi, self.vectors, threads=threads)
            rows.add(list(self._factors(len(self.vectors))), each)
            self._kept = _Weights(phi, each)
        return self._kept

    def _factors(self, rows: int) -> np.ndarray:
        """What each of so many rows of a Gram counts in the decision of each pair of classes."""
        factors = np.zeros((len(self.intercept), rows))
        for pair, (i, j) in enumerate(pairs(len(self.classes))):
            mine, theirs = (slice(self._first[k], self._first[k + 1]) for k in (i, j))
            factors[pair, self._rows[mine]] = self.coefficients[j - 1, mine]
            factors[pair, self._rows[theirs]] = self.coefficients[i, theirs]
        return factors

    def _add_blocks(self, gram: Gram, out: np.ndarray) -> None:
        """Each kernel value is computed once, and used against all other classes."""
        k = len(self.classes)
        number = {pair: at for at, pair in enumerate(pairs(k))}
        step = max(1, TILE // max(1, gram.shape[1]))
        for first in range(0, len(self._rows), step):
            stop = min(first + step, len(self._rows))
            values = gram.block(self._rows[first:stop]).astype(np.float64)
            for i in range(k):
                own = slice(max(first, self._first[i]), min(stop, self._first[i + 1]))
                if own.start >= own.stop:
                    continue
                sums = self.coefficients[:, own] @ values[own.start - first : own.stop - first]
                for row, other in enumerate(j for j in range(k) if j != i):
                    out[number[min(i, other), max(i, other)]] += sums[row]

    def inspect(self) -> Record:
        """What is inside, as plain data: the kernel, support vectors of each class, the training record."""
        return {
            "kernel": repr(self.kernel),
            "shape": self.shape.to_dict(),
            "classes": self.classes.tolist(),
            "support": self.counts.tolist(),
            "intercept": self.intercept.tolist(),
            "bytes": self.vectors.nbytes + self.coefficients.nbytes,
            "training": self.training,
            "written": self.written,
            **self.decisive(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; it appears whole or not at all."""
        if not self.kernel.saved:
            raise ModelError(f"{path}: a model file holds no functions, and the kernel is {self.kernel!r}")
        about, rows = _stored_batch(self.vectors)
        tensors = {
            "coefficients": self.coefficients,
            "intercept": self.intercept,
            "support": self.support,
            "counts": self.counts,
            **{f"vectors.{name}": array for name, array in rows.items()},
            **(state_tensors(self.kernel.phi) if isinstance(self.kernel, FeatureKernel) else {}),
        }
        self._write(path, KERNEL, {"kernel": repr(self.kernel), "vectors": about}, tensors)


def counted(scores: np.ndarray) -> np.ndarray:
    """Scores as they decide: for several classes, whole votes, however clear they are."""
    return scores if scores.ndim == 1 else np.rint(scores)


def votes(decisions: np.ndarray, classes: int) -> np.ndarray:
    """Scores of shape (rows, classes) from those of all pairs: the pairs that a class wins, and less than a third for
    how clearly, as scikit-learn's SVC has them. Pairs whose decisions are NaN do not vote."""
    won, sure = np.zeros((2, classes, decisions.shape[1]))
    for (i, j), decision in zip(pairs(classes), decisions, strict=True):
        won[i] += decision >= 0.0
        won[j] += decision < 0.0
        sure[i] += np.nan_to_num(decision)
        sure[j] -= np.nan_to_num(decision)
    return np.ascontiguousarray((won + sure / (3.0 * (np.abs(sure) + 1.0))).T)


def kernel_model(stored: Stored, own: Mapping[str, type[FeatureMap]]) -> KernelModel:
    """The model that a file with a kernel holds; `own` names further maps."""
    from dotadd.kernel_svm.expression import parse

    path, doubles, whole = stored.path, {"F64": np.float64}, {"I64": np.int64}

    def resolved() -> Kernel:
        kernel = parse(str(stored.record["kernel"]), stored.maps(own))
        if isinstance(kernel, FeatureKernel) and not isinstance(getattr(kernel, "gamma", None), str):
            return replace(kernel, phi=kernel.phi.resolve(stored.shape))  # what it has learned comes below
        if not kernel.resolved:
            raise DotaddError(f"{kernel!r} was not resolved")
        return kernel

    kernel = stored.made("kernel", resolved)
    if isinstance(kernel, FeatureKernel):
        kernel = replace(kernel, phi=stored.map_of(kernel.phi))
    support, counts = (np.array(stored.tensor(name, whole)) for name in ("support", "counts"))
    coefficients, intercept = (np.array(stored.tensor(name, doubles)) for name in ("coefficients", "intercept"))
    try:
        vectors = _loaded_batch(stored)
        model = KernelModel(
            kernel, stored.shape, vectors, support, counts, coefficients, intercept, stored.classes, stored.training,
            stored.columns, stored.untrained,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        message = str(error) if isinstance(error, ModelError) else f"support vectors are damaged ({error})"
        raise ModelError(f"{path}: {message}") from error
    stored.complete(model)
    return model


def _stored_batch(batch: Batch) -> tuple[Record, dict[str, np.ndarray]]:
    """A batch as a record and arrays; it holds its rows alone, as `take` leaves them."""
    match batch:
        case SparseRows():
            values = {} if batch.values is None else {"values": batch.values}
            arrays = {"offsets": batch.offsets.astype(np.int64), "indices": batch.indices, **values}
            return {"kind": batch.kind, "n_features": batch.n_features, "distinct": batch.distinct}, arrays
        case DenseRows():
            return {"kind": batch.kind}, {"values": batch.values}
        case Strings(offsets=None):
            return {"kind": batch.kind, "width": batch.width}, {"letters": batch.together().letters}
        case Strings():
            assert batch.offsets is not None
            return {"kind": batch.kind}, {"letters": batch.letters, "offsets": batch.offsets.astype(np.int64)}
        case Lattices():
            return {"kind": batch.kind}, {name: getattr(batch, name) for name in LATTICES}
    raise ModelError(f"a model file cannot hold {batch.kind}")


def _loaded_batch(stored: Stored) -> Batch:
    """The batch again. What kernels follow without looking, offsets and indices, is looked at here."""
    about, arrays = stored.record["vectors"], stored.tensors("vectors.")
    match about["kind"]:
        case SparseRows.kind:
            values, indices, width = arrays.get("values"), arrays["indices"], int(about["n_features"])
            _require_offsets(arrays["offsets"], len(indices))
            inside = len(indices) == 0 or (indices.min() >= 0 and indices.max() < width)
            if not inside or indices.dtype.kind not in "iu" or (values is not None and len(values) != len(indices)):
                raise ValueError("indices do not fit")
            return SparseRows(arrays["offsets"], indices, values, width, distinct=bool(about["distinct"]))
        case DenseRows.kind | Images.kind as kind:
            if arrays["values"].ndim != (2 if kind == DenseRows.kind else 3):
                raise ValueError("dimensions do not fit")
            return (DenseRows if kind == DenseRows.kind else Images)(arrays["values"])
        case Strings.kind if arrays["letters"].dtype != np.uint8 or arrays["letters"].ndim != 1:
            raise ValueError("letters do not fit")
        case Strings.kind if "offsets" in arrays:
            _require_offsets(arrays["offsets"], len(arrays["letters"]))
            return Strings(arrays["letters"], arrays["offsets"])
        case Strings.kind:
            return Strings(arrays["letters"], width=int(about["width"]))
        case Lattices.kind:
            return Lattices(*(arrays[name] for name in LATTICES)).checked()
    raise ValueError(f"rows of kind {about['kind']!r}")


def _require_offsets(offsets: np.ndarray, items: int) -> None:
    sound = offsets.dtype == np.int64 and offsets.ndim == 1 and len(offsets) > 0
    if not sound or offsets[0] != 0 or offsets[-1] != items or (np.diff(offsets) < 0).any():
        raise ValueError("offsets do not fit")
