"""Pictures of how good a model is: what an evaluation has seen, handed to the functions that draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd.errors import DotaddError, as_written
from dotadd.kernel_svm.one_against_one import pairs
from dotadd.kernel_svm.problem import KernelResult
from dotadd.model.evaluation import Evaluator
from dotadd.model.file import NO_PROBABILITIES, Classifier
from dotadd.model.ranking import Ranked, Ranking
from dotadd.pictures.curves import calibration, convergence, precision_recall, roc
from dotadd.pictures.grids import confusion
from dotadd.pictures.picture import Curve, Picture, most_told
from dotadd.solvers.result import Result
from dotadd.sources.label_sets import members

PAIRS = "all pairs of a row and a label"
NO_TRACE = "there is no record of how training went: a solver notes it pass by pass, and there was no pass"


def label_names(model: Classifier) -> list[str]:
    """The classes as they stood in the file."""
    return [as_written(label) for label in model.classes.tolist()]


def named_rankings(model: Classifier, rankings: Sequence[Ranking]) -> list[tuple[str, Ranking]]:
    """Rankings with the names of what they are of; of many classes those with most rows."""
    if model.several is not None:
        return [(PAIRS, one) for one in rankings]
    names = label_names(model)[1:] if model.two else label_names(model)
    told = most_told(names, np.array([one.true.sum() for one in rankings])) if rankings else []
    return [(names[k], rankings[k]) for k in told]


def roc_picture(model: Classifier, rankings: Sequence[Ranking]) -> Picture:
    """A line for each class, or for the second of two, with the threshold marked."""
    curves = []
    for name, one in named_rankings(model, rankings):
        true, false = _above(model, one)
        mark = (false / one.false.sum(), true / one.true.sum()) if _marked(model, one) else None
        curves.append(Curve(f"{name}: area {one.auroc():.4f}", *one.roc(), mark))
    return roc(curves)


def precision_recall_picture(model: Classifier, rankings: Sequence[Ranking]) -> Picture:
    """The same for precision and recall."""
    curves = []
    for name, one in named_rankings(model, rankings):
        true, false = _above(model, one)
        mark = (true / one.true.sum(), true / (true + false)) if _marked(model, one) and true + false else None
        curves.append(Curve(f"{name}: average precision {one.auprc():.4f}", *one.precision_recall(), mark))
    return precision_recall(curves)


def _above(model: Classifier, one: Ranking) -> tuple[float, float]:
    return one.above(0.0 if model.threshold is None else model.threshold.value)


def _marked(model: Classifier, one: Ranking) -> bool:
    """Whether a threshold decides, and there is something to show it by."""
    return (model.two or model.several is not None) and one.true.sum() > 0.0 and one.false.sum() > 0.0


def calibration_picture(model: Classifier, bins: np.ndarray) -> Picture:
    """What became of probabilities of the second of two classes, or of the most likely one of several."""
    weight, said, happened = bins
    return calibration(weight, said, happened, label_names(model)[1] if model.two else "the most likely class")


def confusion_picture(model: Classifier, counts: np.ndarray) -> Picture:
    """Which classes are taken for which."""
    return confusion(counts, label_names(model))


def convergence_picture(
    model: Classifier, results: Sequence[Result] | Sequence[KernelResult], tol: float
) -> Picture | None:
    """How the gap fell (of a kernel machine the violation; the objective, where a solver knows no gap), of the binary
    problems that ended worst; None where there is no record of it."""
    names, kernel = label_names(model), bool(results) and isinstance(results[0], KernelResult)
    if kernel:
        names = [f"{names[i]} against {names[j]}" for i, j in pairs(len(names))]
    names = ["training"] if len(results) == 1 else names
    what = "violation" if kernel else "relative duality gap"
    answers: list[Result | KernelResult] = list(results)
    curves = [_curve(name, answer) for name, answer in zip(names, answers, strict=True)]
    if not any(np.isfinite(curve.y).any() for curve in curves):
        what, tol = "objective", np.nan
        curves = [_objective(name, one) for name, one in zip(names, answers, strict=True) if isinstance(one, Result)]
    curves = [curve for curve in curves if np.isfinite(curve.y).any()]
    worst = np.array([np.nan_to_num(curve.y[-1], nan=0.0, posinf=np.inf) for curve in curves])
    return convergence([curves[k] for k in most_told([c.name for c in curves], worst)], what, tol) if curves else None


def _curve(name: str, result: Result | KernelResult) -> Curve:
    """What was told while the solver ran, and at the end, marked, what was measured."""
    if isinstance(result, KernelResult):
        points = [(row.seconds, row.violation) for row in result.trace]
        end = result.violation
    else:
        points = [(row.seconds, row.gap) for row in result.trace if row.sample is None]
        end = np.nan if result.gap is None else result.gap
    if points and np.isfinite(end):
        points.append((max(points[-1][0], sum(result.seconds.values())), float(end)))
    x, y = (np.array(column, float) for column in zip(*points, strict=True)) if points else (np.empty(0), np.empty(0))
    return Curve(name, x, y, (float(x[-1]), float(y[-1])) if len(x) and np.isfinite(end) else None)


def _objective(name: str, result: Result) -> Curve:
    points = [(row.seconds, row.primal) for row in result.trace if row.sample is None]
    x, y = (np.array(column, float) for column in zip(*points, strict=True)) if points else (np.empty(0), np.empty(0))
    return Curve(name, x, y)


def rank_pairs(ranked: Ranked, truth: np.ndarray, scores: np.ndarray, classes: np.ndarray, weight: object) -> None:
    """Add the pairs of a row and a label of some more rows, whose labels are sets."""
    offsets, numbers, _ = members(truth, classes)
    true = np.zeros(scores.shape, bool)
    true[np.repeat(np.arange(len(scores)), np.diff(offsets)), numbers] = True
    each = None if weight is None else np.repeat(np.asarray(weight, np.float64), scores.shape[1])
    ranked.add([true.ravel()], [scores.ravel()], each)


def plot_convergence(model: Classifier, results: Sequence[Result] | Sequence[KernelResult], tol: float) -> Picture:
    """How training came to its end; refuses where there is no record of it."""
    if (picture := convergence_picture(model, results, tol)) is None:
        raise DotaddError(NO_TRACE)
    return picture


def ranked(
    model: Classifier, X: object, y: object, sample_weight: object, n_jobs: int | None
) -> tuple[Classifier, list[Ranking]]:
    """The model, and rankings of anything `dotadd.open` takes: of the second class, of each class against the rest, or
    of all pairs of a row and a label."""
    if model.several is None:
        return model, evaluated(model, X, y, sample_weight, n_jobs).rankings()
    from dotadd.model.several_labels import as_sets, require_sets

    found, given = Ranked(), None if y is None else require_sets(y)
    for truth, scores, weight in model.labelled(X, given, sample_weight, n_jobs):
        rank_pairs(found, as_sets(truth), scores, model.classes, weight)
    return model, found.rankings()


def evaluated(model: Classifier, X: object, y: object, sample_weight: object, n_jobs: int | None) -> Evaluator:
    """What an evaluation of anything `dotadd.open` takes has seen."""
    if model.several is not None:
        raise DotaddError("several labels a row have neither a confusion matrix nor one probability a row")
    found, curves = Evaluator(model.classes), model.probability
    for truth, scores, weight in model.labelled(X, y, sample_weight, n_jobs):
        sure = None if curves is None else curves.probabilities(scores)
        found.see(truth, scores, model.classes[model.winners(scores)], weight, sure)
    return found


def reliability(model: Classifier, found: Evaluator) -> Picture:
    """What became of probabilities; refuses where there are none."""
    if (bins := found.reliability()) is None:
        raise DotaddError(NO_PROBABILITIES)
    return calibration_picture(model, bins)
