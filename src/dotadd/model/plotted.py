"""`plot_*` of models and estimators: pictures that notebooks show, and that save themselves.

What draws them is imported when they are asked for: training has no need of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dotadd.model.file import Classifier
    from dotadd.pictures.picture import Picture


class Plots:
    """Labels and weights that are not given come from X, as a file has them. Memory is bounded, however many rows X
    has."""

    def _plotted(self, X: object, y: object) -> tuple[Classifier, int | None]:
        """The model, and the number of threads; refuses rows that it cannot take."""
        raise NotImplementedError

    def plot_roc(self, X: object, y: object = None, sample_weight: object = None) -> Picture:
        """The ROC curve on these rows, with its area and the threshold; of several classes, of each against the rest;
        of several labels a row, of all pairs of a row and a label."""
        from dotadd.model.plots import ranked, roc_picture

        model, n_jobs = self._plotted(X, y)
        return roc_picture(*ranked(model, X, y, sample_weight, n_jobs))

    def plot_precision_recall(self, X: object, y: object = None, sample_weight: object = None) -> Picture:
        """The precision-recall curve on these rows, with average precision and the threshold."""
        from dotadd.model.plots import precision_recall_picture, ranked

        model, n_jobs = self._plotted(X, y)
        return precision_recall_picture(*ranked(model, X, y, sample_weight, n_jobs))

    def plot_confusion(self, X: object, y: object = None, sample_weight: object = None) -> Picture:
        """Which classes are taken for which."""
        from dotadd.model.plots import confusion_picture, evaluated

        model, n_jobs = self._plotted(X, y)
        return confusion_picture(model, evaluated(model, X, y, sample_weight, n_jobs).confusion)

    def plot_calibration(self, X: object, y: object = None, sample_weight: object = None) -> Picture:
        """How often what probabilities promise comes true; for models that have probabilities."""
        from dotadd.model.plots import evaluated, reliability

        model, n_jobs = self._plotted(X, y)
        return reliability(model, evaluated(model, X, y, sample_weight, n_jobs))
