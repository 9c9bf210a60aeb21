"""What notebooks show of estimators, models, maps and results: pictures, and HTML in which names are text."""

from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dotadd import KernelSVM, LinearSVM, LinearSVMCV, NGrams, Spectrum
from dotadd.errors import DotaddError
from dotadd.model.evaluation import evaluate

PLOTS = ("plot_roc", "plot_precision_recall", "plot_confusion")


def data(classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    names = np.array(["<b>no</b>", "yes & more", "c"])
    return X, names[(X[:, :classes] + 0.4 * rng.standard_normal((90, classes))).argmax(axis=1)]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "make", [LinearSVM, lambda: KernelSVM("RBF(gamma=0.3)"), lambda: LinearSVMCV(Cs=[0.1, 1], cv=3)]
)
def test_pictures_of_an_estimator_and_of_its_model_are_the_same(make, classes):
    X, y = data(classes)
    svm = make().fit(X, y)
    for name in PLOTS:
        found = getattr(svm, name)(X, y)
        assert found == getattr(svm.model_, name)(X, y)
        ElementTree.fromstring(found._repr_html_())
        ElementTree.fromstring(found._repr_svg_())
    ElementTree.fromstring(svm.plot_convergence().svg)
    told = evaluate(y, svm.decision_function(X), svm.classes_, svm.predict(X))
    shown = "".join(ElementTree.fromstring(svm.plot_roc(X, y).svg).itertext())
    assert all(f"area {area:.4f}" in shown for area in told.auroc)
    counts = "".join(ElementTree.fromstring(svm.plot_confusion(X, y).svg).itertext())
    assert all(str(count) in counts for count in told.confusion.ravel())


def test_weights_of_rows_count_in_pictures():
    X, y = data()
    svm, weight = LinearSVM().fit(X, y), np.arange(1.0, 91.0)
    twice = np.repeat(np.arange(90), weight.astype(int))
    assert svm.plot_confusion(X, y, weight).svg == svm.plot_confusion(X[twice], y[twice]).svg


def test_calibration_is_drawn_where_there_are_probabilities():
    X, y = data()
    assert "Calibration" in LinearSVM(loss="logistic").fit(X, y).plot_calibration(X, y).svg
    with pytest.raises(DotaddError, match="no probabilities"):
        LinearSVM().fit(X, y).plot_calibration(X, y)


def test_several_labels_have_curves_over_all_pairs_and_no_confusion_matrix():
    X, _ = data()
    y = [[k for k in range(3) if row[k] > 0.2] for row in X]
    svm = LinearSVM().fit(X, y)
    assert "all pairs" in svm.plot_roc(X, y).svg
    assert "all pairs" in svm.plot_precision_recall(X, y).svg
    with pytest.raises(DotaddError, match="several labels a row"):
        svm.plot_confusion(X, y)
    ElementTree.fromstring(svm.plot_convergence().svg)


def test_nothing_is_drawn_before_fit():
    for name in PLOTS:
        with pytest.raises(NotFittedError):
            getattr(LinearSVM(), name)(*data())
    with pytest.raises(NotFittedError):
        LinearSVM().plot_convergence()


def test_what_notebooks_show_is_text_whatever_it_holds():
    X, y = data()
    svm = LinearSVM(class_weight={"<b>no</b>": 2.0, "yes & more": 1.0}).fit(X, y)
    shown = [LinearSVM(loss="<script>"), svm, svm.model_, svm.result_, KernelSVM("RBF(gamma=1)").fit(X, y).result_]
    shown += [NGrams((2, 3)).hashed(10), Spectrum(3) + NGrams(2), evaluate(y, svm.decision_function(X), svm.classes_)]
    for one in shown:
        tree = ElementTree.fromstring(one._repr_html_())
        assert {part.tag for part in tree.iter()} <= {"div", "b", "table", "tr", "td"}
    words = "".join(ElementTree.fromstring(svm._repr_html_()).itertext())
    assert "class_weight" in words
    assert "<b>no</b>" in words
    assert "max_passes" not in words  # it is as it was


def test_scikit_learn_shows_pipelines_with_our_estimators():
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), LinearSVM(C=0.25)).fit(X, y)
    assert "LinearSVM" in pipeline._repr_html_()
    assert "LinearSVM(C=0.25)" in repr(pipeline)
