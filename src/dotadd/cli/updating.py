"""Options that go on with an earlier model: `dotadd train new.csv --update old.dotadd -o new.dotadd`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar, cast

from cyclopts import Parameter

from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from dotadd.cli.options import Solving
    from dotadd.model.file import Record
    from dotadd.model.linear import Model

T = TypeVar("T")
TAKEN_OVER = {"cost": "C", "loss": "loss", "intercept": "intercept"}  # options, and what the training record calls them


class _Word(str):
    __slots__ = ()


class _Number(float):
    __slots__ = ()


def unsaid(value: T) -> T:
    """A default that can be told from the same value said by somebody."""
    return cast(T, _Word(value) if isinstance(value, str) else _Number(cast(float, value)))


@Parameter(name="*", group="Go on with new rows")
@dataclass(frozen=True, kw_only=True)
class Updating:
    """An earlier model that is to learn from other rows, its own being gone."""

    update: str | None = None
    """Update this model: it counts by the rows that it stands for, and the data given by its own. Features stay what
    they are, and C, loss and intercept where nothing else is said."""

    stands_for: float | None = None
    """Let the model stand for so many rows; by default those that it was trained on, in all its updates."""

    new_classes: bool = True
    """Take labels that the model does not know for new classes; otherwise they are refused."""

    def model(self, *, kernel: bool, folds: bool, cluster: bool) -> Model | None:
        """The model to update, if there is one; refuses what does not go with it."""
        if self.update is None:
            if self.stands_for is not None or not self.new_classes:
                raise DotaddError("--stands-for and --no-new-classes say how a model is updated: name it by --update")
            return None
        for there, what in ((kernel, "--kernel"), (folds, "--cv and -C auto"), (cluster, "--scheduler and --workers")):
            if there:
                raise DotaddError(f"--update does not go with {what}")
        from dotadd.model.linear import Model, load

        model = load(self.update)
        if not isinstance(model, Model):
            raise DotaddError(f"{self.update}: is a kernel machine, which cannot be updated")
        return model

    def as_before(self, solving: Solving, model: Model) -> Solving:
        """The options with what the model was trained with, where nobody has said otherwise."""
        mine = {option: model.training.get(name) for option, name in TAKEN_OVER.items()}
        unsaid = {
            option: value for option, value in mine.items() if isinstance(getattr(solving, option), _Word | _Number)
        }
        return replace(solving, **{option: value for option, value in unsaid.items() if value is not None})

    def fit_options(self, model: Model) -> Record:
        """The arguments of `fit`."""
        return {"start": model, "stands_for": self.stands_for, "new_classes": self.new_classes}

    def lines(self, model: Model | None, training: Record) -> dict[str, str]:
        """What the screen tells of it."""
        if model is None:
            return {}
        stood, strength = training["update"]["stood_for"], training["update"]["strength"]
        lost = [name for name, one in (("probabilities", model.calibration), ("threshold", model.threshold)) if one]
        again = f"; its {' and '.join(lost)} have to be learned again (dotadd calibrate)" if lost else ""
        counts = f"which stood for {stood:,.0f} rows and counts by {strength:.3g}{again}"
        return {"update": f"of {self.update}, {counts}; stands for {training['stands_for']:,} rows now"}
