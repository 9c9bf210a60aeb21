"""Models of LS-GKM: text, plain or compressed, with a header, and then a coefficient and a sequence on each line.

The output for a sequence z is sum_i coefficient_i k(z_i, z) - rho; positive means the label that comes first. All but
the RBF kernels are compiled into a weight for each l-mer (features/lmer_counts.py), so that however many support
vectors there are, they cost nothing afterwards. LS-GKM reads letters other than ACGT as A. Support vectors are read in
the same way here; in sequences to be scored, l-mers with such letters are left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple, TypeVar

import numpy as np

from dotadd._util.compressed import decompressed, lines_of
from dotadd._util.threads import over_rows, thread_count
from dotadd.data.batches import Strings
from dotadd.errors import DataError, FeatureError, ModelError
from dotadd.explain.matching import numbers_of
from dotadd.features.base import Shape
from dotadd.features.lmer_counts import LmerCounts
from dotadd.model.kernel import KernelModel
from dotadd.model.linear import Model

FILTERS = {
    "gkm_cnt": "count",
    "gkm_estfull": "full",
    "gkm_esttrunc": "truncated",
    "gkmrbf": "truncated",
    "wgkm": "truncated",
    "wgkmrbf": "truncated",
    "gkm_cnt_rbf": "count",
}
KNOWN = {
    "svm_type", "kernel_type", "L", "k", "d", "norc", "gamma", "M", "H", "nr_class", "total_sv", "rho", "label",
    "nr_sv", "probA", "probB",
}  # fmt: skip

Number = TypeVar("Number", int, float)


class _Header:
    """What stands before the support vectors, by name; each complaint names the file and the line."""

    def __init__(self, path: str, lines: Iterator[tuple[int, bytes]]) -> None:
        self.path, self.words, self.lines = path, dict[str, list[str]](), dict[str, int]()
        for number, line in lines:
            name, *words = line.decode("latin-1").split() or [""]
            if name == "SV":
                return
            if name not in KNOWN:
                raise self.error(f"{name[:40]!r} is nothing that a model of LS-GKM has in its header", number)
            self.words[name], self.lines[name] = words, number
        raise self.error("the header has no end: there is no line SV, so the file was cut off")

    def error(self, message: str, line: int | None = None) -> ModelError:
        return ModelError(f"{self.path}:{'' if line is None else f'{line}:'} {message}")

    def numbers(self, name: str, kind: Callable[[str], Number], count: int) -> list[Number]:
        """The numbers that stand behind a name."""
        words = self.words.get(name)
        if words is None:
            raise self.error(f"the header has no line {name}")
        try:
            found = [kind(word) for word in words]
        except ValueError:
            found = []
        if len(found) != count or not np.isfinite(found).all():
            raise self.error(f"{name} {' '.join(words)[:40]} is not {count} numbers", self.lines[name])
        return found

    def word(self, name: str) -> str:
        return " ".join(self.words.get(name, []))

    def phi(self) -> LmerCounts:
        """The map of its kernel."""
        kind = self.word("kernel_type")
        if kind not in FILTERS:
            known = ", ".join(FILTERS)
            raise self.error(f"kernel_type {kind[:40]!r} is none of LS-GKM's ({known})", self.lines.get("kernel_type"))
        if self.word("svm_type") not in ("c_svc", "nu_svc") or self.numbers("nr_class", int, 1) != [2]:
            raise self.error("only machines for two classes can be read (svm_type c_svc, nr_class 2)")
        (length,), (k,), (d,) = (self.numbers(name, int, 1) for name in ("L", "k", "d"))
        strands = "one" if "norc" in self.words and self.numbers("norc", int, 1) != [0] else "both"
        middle = None
        if kind.startswith("w"):
            middle = (self.numbers("M", int, 1)[0], self.numbers("H", float, 1)[0])
        try:
            return LmerCounts(length, k, min(d, length), filter=FILTERS[kind], strands=strands, middle=middle)
        except FeatureError as error:
            raise self.error(str(error)) from error


class LsgkmModel(Model):
    """A linear machine of LS-GKM: the model, and beside it the support vectors, each with its coefficient over its
    length. They tell which pairs of l-mers a weight was made of."""

    factors: np.ndarray
    vectors: Strings

    def counts(self) -> np.ndarray:
        """What each l-mer counts in all support vectors together, on both strands where both are read."""
        phi = self.phi
        assert isinstance(phi, LmerCounts)
        twin = LmerCounts(phi.l, phi.k, phi.mismatches, filter=phi.filter, strands="one", middle=phi.middle)
        counts = twin.counted(self.vectors, np.arange(len(self.vectors)), self.factors, twin.tabled())
        return counts if phi.strands == "one" else counts + counts[numbers_of(phi.l)[1]]


class _Vectors(NamedTuple):
    coefficients: np.ndarray
    strings: Strings

    @classmethod
    def read(cls, header: _Header, lines: Iterator[tuple[int, bytes]]) -> _Vectors:
        (total,) = header.numbers("total_sv", int, 1)
        coefficients, sequences = [], []
        for number, line in lines:
            words = line.split()
            if not words:
                continue
            try:
                coefficient, sequence = words
                coefficients.append(float(coefficient))
            except ValueError:
                raise header.error("expected a coefficient and a sequence", number) from None
            if not np.isfinite(coefficients[-1]):
                raise header.error(f"coefficient {coefficients[-1]}: the model was never trained", number)
            sequences.append(sequence)
        if len(sequences) != total:
            raise header.error(f"{len(sequences)} support vectors, and the header tells of {total}")
        strings = Strings.from_list(sequences)
        letters = strings.letters.copy()
        letters[~np.isin(letters, np.frombuffer(b"ACGTacgt", np.uint8))] = ord("A")
        return cls(np.array(coefficients), Strings(letters, strings.offsets))


def load_lsgkm(path: str | os.PathLike[str]) -> Model | KernelModel:
    """The model of such a file."""
    name = os.fspath(path)
    try:
        with decompressed(name) as (_, file):
            return _loaded(name, file)
    except DataError as error:
        raise ModelError(str(error)) from error


def _loaded(name: str, file: IO[bytes]) -> Model | KernelModel:
    lines = lines_of(file, name)
    header = _Header(name, lines)
    phi, (rho,) = header.phi(), header.numbers("rho", float, 1)
    first, second = header.numbers("label", int, 2)
    vectors = _Vectors.read(header, lines)
    classes, training = np.array([second, first]), {"made_by": "LS-GKM", "vectors": len(vectors.coefficients)}
    shape = Shape(Strings.kind)
    if "rbf" not in header.word("kernel_type"):
        w, factors = compiled(phi, *vectors)
        model = LsgkmModel(phi, shape, w, np.array([-rho]), classes, training)
        model.factors, model.vectors = factors, vectors.strings
        return model
    from dotadd.kernel_svm.gkm_kernel import GkmRBF

    counts = np.array(header.numbers("nr_sv", int, 2))
    if counts.sum() != len(vectors.coefficients) or counts.min() < 0:
        raise header.error(f"nr_sv {counts[0]} {counts[1]} are not all of {len(vectors.coefficients)}")
    order = np.r_[counts[0] : counts.sum(), 0 : counts[0]]  # those of the first class here, then of the second
    kernel = GkmRBF(phi, header.numbers("gamma", float, 1)[0])
    return KernelModel(
        kernel, shape, vectors.strings.take(order), np.arange(len(order)), counts[::-1].copy(),
        vectors.coefficients[order][None], np.array([-rho]), classes, training,
    )  # fmt: skip


def compiled(phi: LmerCounts, coefficients: np.ndarray, vectors: Strings) -> tuple[np.ndarray, np.ndarray]:
    """The weight of each l-mer: w with <w, phi(z)> = sum_i coefficient_i k(z_i, z); and the coefficients over lengths,
    which it is made of."""
    threads, lengths = thread_count(None), np.empty(len(vectors))
    rows = np.arange(len(vectors))

    def measure(first: int, stop: int) -> None:
        lengths[first:stop] = phi.lengths(vectors, rows[first:stop])

    over_rows(measure, len(vectors), threads)
    table, w = phi.tabled(), np.zeros(phi.dim)
    factors = np.divide(coefficients, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    table.gather(phi.counted(vectors, rows, factors, table), w, threads)
    return w, factors
