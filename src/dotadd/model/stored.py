"""A model file as it is read: its record, tensors that are mapped into memory, and what all models have of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from dotadd._util import tensor_file
from dotadd.errors import DotaddError, ModelError
from dotadd.features.base import FeatureMap, Shape
from dotadd.model.file import FORMAT, TEXT, Classifier, Record
from dotadd.sources.base import remembered
from dotadd.sources.label_sets import KINDS
from dotadd.sources.table import Layout

Made = TypeVar("Made")


class Stored:
    """A model file that has been found sound: its record, what all models have of it, and its tensors by name.

    The file is read through once, for its checksum, which older ones do not have. Then tensors are mapped into memory:
    what a prediction does not touch takes none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from safetensors import SafetensorError, safe_open

        self.path = Path(path)
        with open(path, "rb") as file:
            try:
                with safe_open(path, framework="np"):  # checks that the header and the length of the file agree
                    pass
            except SafetensorError as error:
                why = " ".join(str(error).split())
                raise ModelError(f"{path}: not a model file, or cut short or damaged ({why})") from error
            if not tensor_file.is_sound(path):
                raise ModelError(f"{path}: is damaged: it is not what was written (wrong checksum); copy it again")
            size = int.from_bytes(file.read(8), "little")
            self._layout = json.loads(file.read(size))
        self._first = 8 + size
        try:
            self.record = json.loads(self._layout["__metadata__"]["dotadd"])
            if not isinstance(self.record["format"], int):
                raise TypeError("format is not a number")
        except (KeyError, TypeError, ValueError) as error:
            raise self._foreign() from error
        if self.record["format"] > FORMAT:
            raise ModelError(
                f"{path}: written by a newer dotadd ({self.record.get('version')}, format {self.record['format']}; "
                f"this one reads up to format {FORMAT}): update dotadd"
            )
        try:
            self.shape = Shape(**self.record["shape"])
            self.training = dict(self.record["training"])
            self.classes = _classes_from_json(self.record["classes"])
            columns = self.record.get("columns")  # of a table that was trained on by a version that knew names
            self.columns = None if columns is None else Layout.from_dict(columns)
            self.untrained = list(self.record.get("untrained", ()))
            self.several = self.record.get("several")  # where rows have several labels, how these were given
            if self.several is not None and self.several not in KINDS:
                raise ValueError(f"several labels as {self.several}")
            self.read_as = remembered(self.record.get("read_as", {}))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{path}: the model's header is damaged ({type(error).__name__}: {error})") from error

    def tensor(self, name: str, types: Mapping[str, type] = tensor_file.TYPES) -> np.ndarray:
        """The tensor of this name, which has to have one of these types."""
        try:
            entry = self._layout[name]
            dtype, shape = types[entry["dtype"]], tuple(entry["shape"])
        except KeyError as error:
            raise self._foreign() from error
        if 0 in shape:
            return np.empty(shape, dtype)  # nothing cannot be mapped
        return np.memmap(self.path, dtype, "r", self._first + entry["data_offsets"][0], shape).view(np.ndarray)

    def tensors(self, prefix: str) -> dict[str, np.ndarray]:
        """All tensors whose names begin like this, by the rest of their names."""
        names = [name for name in self._layout if name.startswith(prefix)]
        return {name.removeprefix(prefix): self.tensor(name) for name in names}

    def complete(self, model: Classifier) -> None:
        """Give a model what others need not have: version and date, how to read data, probabilities, a threshold."""
        model.read_as = self.read_as
        model.written = {key: str(self.record.get(key)) for key in ("version", "date")}
        columns, what = 1 if model.two else len(model.classes), "threshold"
        try:
            if (cut := self.record.get(what)) is not None:
                from dotadd.model.threshold import Threshold

                if columns > 1:
                    raise ModelError(f"it is for two classes, and there are {columns}")
                model.threshold = Threshold.from_dict(cut)
            what = "calibration"
            if (how := self.record.get(what)) is not None:
                from dotadd.model.probability import Calibration

                model.calibration = Calibration.from_tensors(how["method"], self.tensors("calibration."), columns)
        except (KeyError, TypeError, ValueError) as error:
            message = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
            raise ModelError(f"{self.path}: the model's {what} is damaged ({message})") from error

    def made(self, what: str, make: Callable[[], Made]) -> Made:
        """What an expression in the record describes."""
        try:
            return make()
        except DotaddError as error:
            raise ModelError(
                f"{self.path}: the model's {what} cannot be made: {error} (a map of your own is named with "
                "dotadd.load(path, features={'Name': Name}))"
            ) from error

    def maps(self, own: Mapping[str, Callable[..., FeatureMap]]) -> dict[str, Callable[..., FeatureMap]]:
        """The maps that names in its expressions stand for, where they mean something else than now: a user's own, and
        older ones."""
        from dotadd.features.expression import maps_of_0_1

        return (maps_of_0_1() if self.record["format"] < TEXT else {}) | dict(own)

    def map_of(self, phi: FeatureMap) -> FeatureMap:
        """This map, which is resolved, with what it has learned."""
        try:
            return phi.with_state(self.tensors("phi."))
        except (KeyError, ValueError) as error:
            message = f"what {phi!r} has learned is damaged ({type(error).__name__}: {error})"
            raise ModelError(f"{self.path}: {message}") from error

    def _foreign(self) -> ModelError:
        return ModelError(f"{self.path}: a safetensors file, but not a model of dotadd")


def _classes_from_json(record: Record) -> np.ndarray:
    dtype = np.dtype(record["dtype"])
    if dtype.kind not in "biufUO":
        raise ValueError(f"labels of type {dtype}")
    return np.array(record["values"], dtype)
