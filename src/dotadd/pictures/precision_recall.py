"""The precision-recall curve: how much of what is found is right, over how much of what is there is found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd.pictures.picture import Axes, Curve, Picture, Scale


def precision_recall(curves: Sequence[Curve]) -> Picture:
    """Recall (x) and precision (y) at each score, from the highest. The line goes in steps, so that what is below it is
    the average precision."""
    axes = Axes("Precision-recall curve", Scale.share(), Scale.share(), "recall", "precision")
    for number, curve in enumerate(curves):
        axes.line(curve._replace(x=steps(curve.x), y=np.repeat(curve.y, 2)), number)
    return axes.picture()


def steps(recall: np.ndarray) -> np.ndarray:
    """Where each step begins and ends: at the recall before it, and at its own."""
    return np.repeat(np.r_[0.0, recall], 2)[1:-1]
