"""The ROC curve: how many of the rows that are meant are found, over how many of the others are taken for them."""

from __future__ import annotations

from collections.abc import Sequence

from dotadd.pictures.picture import Axes, Curve, Picture, Scale


def roc(curves: Sequence[Curve]) -> Picture:
    """Shares of false rows (x) and of true ones (y) above each score; equal scores are joined by a straight line, as
    the area under the curve counts them."""
    axes = Axes("ROC curve", Scale.share(), Scale.share(), "false positive rate", "true positive rate (recall)")
    axes.diagonal()
    for number, curve in enumerate(curves):
        axes.line(curve, number)
    return axes.picture()
