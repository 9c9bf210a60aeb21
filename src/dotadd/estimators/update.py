"""Go on with other rows than an earlier model was made of, which are gone.

Problem:  min_{w, b} s/2 (|w - f w0|^2 [+ (b - f b0)^2]) + sum_i C_i loss(y_i (<w, phi(z_i)> + b)), over the new rows
Given:    a model w0, b0, and how many rows it stands for
Returned: a model of both, that stands for all of them; the objective and its proof are those of this problem over s

s follows from the numbers of rows and from how they bend the losses (solvers/strength.py). f is 1, unless the model is
to stand for fewer rows than it was made of: their losses pull with a share of their force then, w0 being where they are
held in balance by the penalty, and with none of it a plain fit is left.

Maps stay as they are, with all that they have learned. A class that the model does not know is a column of its own,
whose rows were all negative so far: w0 = 0, and b0 where so many rows would have it; s = 1, since of what tells it from
others the old rows know nothing. If there were two classes before, in one column, the first gets the opposite of what
the second has. Classes of which no new row is stay, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from dotadd.errors import DotaddError, as_written
from dotadd.features.base import FeatureMap, require_kind
from dotadd.features.expression import parse
from dotadd.features.on_demand import OnDemand
from dotadd.model.linear import Model
from dotadd.problem.columns import TOLD, Tally, Targets
from dotadd.problem.problem import Centre, Examples, Intercept, Problem
from dotadd.solvers.line_search import minimum_along
from dotadd.solvers.strength import curvature, strength
from dotadd.sources.base import CHUNK_BYTES, Around, Chunk, Source

TEXT = "UOS"  # kinds of arrays that hold names


@dataclass(frozen=True)
class Update:
    """An earlier model, the rows that it stands for, which part of those it was made of that is, and whether classes
    may come that it does not know."""

    model: Model
    rows: float
    part: float
    new_classes: bool = True

    @classmethod
    def of(cls, model: object, stands_for: object, new_classes: bool) -> Update:
        """Refuses what cannot be updated."""
        if not isinstance(model, Model):
            raise DotaddError(
                "start= is the result_ of an earlier fit on the same rows, or a linear model to update with others; "
                f"{type(model).__name__} is neither"
            )
        if model.several is not None:
            raise DotaddError("an update is for rows with one label each, and the rows of this model have several")
        made_of = model.training.get("stands_for", model.training.get("rows"))
        if stands_for is None and made_of is None:
            raise DotaddError("the model does not tell how many rows it stands for: give stands_for= (--stands-for)")
        rows = made_of if stands_for is None else stands_for
        if not isinstance(rows, Real) or isinstance(rows, bool) or not 0.0 <= float(rows) < np.inf:
            raise DotaddError(f"stands_for={rows!r} is no number of rows: it has to be 0 or more")
        if not np.isfinite(model.w).all():
            raise DotaddError("the model has weights that are no numbers, and cannot be updated")
        return cls(model, float(rows), min(1.0, float(rows) / made_of) if made_of else 1.0, new_classes)

    def map_for(self, given: FeatureMap | str | None) -> FeatureMap:
        """The model's map, if no other was asked for."""
        phi = self.model.phi
        if given is not None:
            asked = parse(given) if isinstance(given, str) else given
            if repr(asked) != repr(phi) and repr(asked.resolve(self.model.shape)) != repr(phi):
                raise DotaddError(f"the model has the features {phi!r}, which an update cannot change to {asked!r}")
        return phi

    def bound(self, chunk: Chunk) -> FeatureMap:
        """The map for the rows of this chunk."""
        batch = chunk.batch.typical()
        require_kind(self.model.phi, batch)
        return self.model.phi if batch is chunk.batch else OnDemand(self.model.phi)

    def fitting(self, chunk: Chunk) -> Chunk:
        """The chunk in the width that the model was made for; virtual examples are looked at, and left as they are."""
        batch = chunk.batch.typical()
        fitting = self.model.fitting(chunk if batch is chunk.batch else replace(chunk, batch=batch.slice(0, 1)))
        return fitting if batch is chunk.batch else chunk

    def around(self, source: Source) -> Source:
        """The same examples, in that width."""
        return _Fitting(source, self, on_bad_row=source.on_bad_row, skipped=source.skipped)

    def joined(self, tally: Tally) -> Tally:
        """The tally of the new rows with the classes of the model; one of which none is there is as heavy as others."""
        if tally.classes is None:
            return tally
        known, found = self.model.classes, tally.classes
        if (known.dtype.kind in TEXT) is not (found.dtype.kind in TEXT):
            kinds = ["names" if classes.dtype.kind in TEXT else "numbers" for classes in (known, found)]
            raise DotaddError(f"the model's classes are {kinds[0]}, and the labels of the new rows are {kinds[1]}")
        strange = found[~np.isin(found, known)]
        if len(strange) and not self.new_classes:
            names, has = (", ".join(map(as_written, some.tolist()[:TOLD])) for some in (strange, known))
            raise DotaddError(
                f"the model has no class {names}: it has {has}; others need new_classes=True (--new-classes)"
            )
        both = copy(tally)
        both.classes = np.union1d(known, found) if len(strange) else known
        both.totals = np.full(len(both.classes), tally.totals.mean())
        both.totals[np.searchsorted(both.classes, found)] = tally.totals
        return both

    def drawn(self, problem: Problem[Examples], targets: Targets, C: float, rows: int) -> Drawn:
        """How strongly the model counts beside so many new rows, whose losses weigh C, and where it draws w and b."""
        centres = self._centres(problem, targets, C)
        s = strength(curvature(problem, centres), self.rows / rows)
        known = [label in self._places for label in targets.classes[targets.problems].tolist()]
        f = 1.0 - (1.0 - self.part) / s
        moved = [
            Centre(centre.w * centre.w.dtype.type(f), centre.b * f) if old else centre
            for centre, old in zip(centres, known, strict=True)
        ]
        return Drawn(s, np.where(known, 1.0 / s, 1.0), moved)

    @property
    def _places(self) -> dict[object, int]:
        """The number of each class in the model."""
        return {label: k for k, label in enumerate(self.model.classes.tolist())}

    def _centres(self, problem: Problem[Examples], targets: Targets, C: float) -> list[Centre]:
        model, dtype = self.model, problem.examples.dtype
        if problem.intercept is Intercept.NONE and model.intercept.any():
            raise DotaddError('the model has an intercept, and intercept="none" would lose it')
        places, found = self._places, []
        for label in targets.classes[targets.problems].tolist():
            k, turned = places.get(label), 1.0
            if k is None:
                found.append(Centre(problem.zeros(), self._never(problem, C)))
                continue
            if len(model.classes) == 2:
                k, turned = 0, 1.0 if k else -1.0
            found.append(Centre(np.array(turned * model.w[k], dtype), turned * float(model.intercept[k])))
        return found

    def _never(self, problem: Problem[Examples], C: float) -> float:
        """The intercept that is best for as many rows as the model stands for, if none of them is of a class."""
        if problem.intercept is not Intercept.REGULARIZED or not self.rows:
            return 0.0
        return -minimum_along(int(problem.loss), np.zeros(1), np.ones(1), np.array([C * self.rows]), 0.0, 1.0)

    def identity(self) -> str:
        """What tells this update from others, for a checkpoint."""
        digest = hashlib.sha256(np.ascontiguousarray(self.model.w).data)
        digest.update(np.ascontiguousarray(self.model.intercept).data)
        return f"{digest.hexdigest()[:16]}, {self.rows:g} rows"

    def record(self, rows: int, s: float) -> dict[str, object]:
        """What the training record says of it."""
        total = self.rows + rows
        return {
            "stands_for": int(total) if total.is_integer() else total,
            "update": {"stood_for": self.rows, "strength": s, "new_classes": self.new_classes},
        }


@dataclass(frozen=True)
class Drawn:
    """The strength s of an earlier model, what costs are multiplied with for it, and where it draws w and b."""

    strength: float
    factors: np.ndarray
    centres: list[Centre]


@dataclass
class _Fitting(Around):
    """Another source whose rows are brought to the width that a model was made for."""

    update: Update

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        for chunk in self.source.chunks(nbytes):
            yield self.update.fitting(chunk)
