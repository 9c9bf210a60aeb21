"""Progress in notebooks: one line for each cell that changes in place, nothing elsewhere, and what is found is kept."""

import re
import sys
import types
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from dotadd import KernelSVM, KernelSVMCV, LinearSVM, LinearSVMCV
from dotadd.errors import DotaddError, NotConvergedWarning
from dotadd.estimators import notebook
from dotadd.estimators.course import Course
from dotadd.solvers.result import Progress


class Shell:
    """A shell of IPython in a kernel of Jupyter, and what its cells show."""

    kernel = object()

    def __init__(self):
        self.execution_count = 1
        self.calls = []

    def display(self, shown, *, display_id, update):
        self.calls.append((display_id, update, shown))

    def cells(self):
        """What front ends show in the end: of each place what it was changed to last."""
        places = {}
        for display_id, update, shown in self.calls:
            assert update == (display_id in places), "a place is made once, and then changed"
            places[display_id] = shown
        return list(places.values())


@pytest.fixture
def shell(monkeypatch):
    found = Shell()
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: found
    display.display = lambda *args, **kwargs: found.display(*args, **kwargs)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(notebook, "CELL", notebook.CellLine())
    monkeypatch.setattr(notebook, "AFTER", 0.0)
    monkeypatch.setattr(notebook, "EVERY", 0.0)
    return found


def data(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


MACHINES = [
    (LinearSVM(), "gap"),
    (LinearSVM(solver="ocas"), "gap"),
    (KernelSVM(), "gap"),
    (LinearSVMCV(Cs=[0.1, 1.0], cv=3), "gap"),
    (KernelSVMCV(Cs=[0.1, 1.0], cv=3), "gap"),
]


@pytest.mark.parametrize(("svm", "told"), MACHINES, ids=lambda value: type(value).__name__)
def test_a_fit_is_one_line_that_ends_with_what_was_found(shell, svm, told):
    svm.fit(*data())
    (last,) = shell.cells()
    assert len(shell.calls) > 1
    assert last.share == 1.0
    assert repr(last).startswith(f"{type(svm).__name__}: the relative duality gap is within the tolerance, {told} ")
    result = svm.result_
    shown = float(re.search(r"gap ([\d.e-]+)", repr(last)).group(1))
    assert shown == pytest.approx(result.gap, rel=0.01)
    for _, _, line in shell.calls:
        assert 0.0 <= line.share <= 1.0
        tree = ElementTree.fromstring(line._repr_html_())
        assert "".join(tree.itertext()).strip() == repr(line)


def test_the_same_is_found_with_and_without_a_line(shell, monkeypatch):
    shown = LinearSVM(random_state=0).fit(*data())
    monkeypatch.delitem(sys.modules, "IPython")
    plain = LinearSVM(random_state=0).fit(*data())
    assert np.array_equal(shown.coef_, plain.coef_)


def test_fits_of_one_cell_share_a_line_and_cells_have_their_own(shell):
    GridSearchCV(LinearSVM(), {"C": [0.1, 1.0]}, cv=3, error_score="raise").fit(*data())
    (last,) = shell.cells()
    assert "fit 7 of this cell" in repr(last)
    shell.execution_count += 1
    LinearSVM().fit(*data())
    assert len(shell.cells()) == 2
    assert repr(shell.cells()[1]).startswith("LinearSVM: ")


def test_nothing_is_shown_where_somebody_is_told_nor_of_a_short_fit(shell, monkeypatch):
    told = []
    LinearSVM().fit(*data(), on_progress=lambda *what: told.append(what))
    assert told
    assert shell.calls == []
    monkeypatch.setattr(notebook, "AFTER", 60.0)
    LinearSVM().fit(*data())
    assert shell.calls == []


def test_nothing_is_shown_on_a_terminal(shell, capsys):
    shell.__class__ = type("TerminalShell", (Shell,), {})
    kernel = Shell.kernel
    del Shell.kernel
    try:
        LinearSVM().fit(*data())
    finally:
        Shell.kernel = kernel
    assert shell.calls == []
    assert capsys.readouterr() == ("", "")


def test_an_interrupted_kernel_keeps_what_it_has_and_says_so(shell, monkeypatch):
    def interrupted(*args, **kwargs):
        shell.display(*args, **kwargs)
        if len(shell.calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["IPython.display"], "display", interrupted)
    svm = LinearSVM(tol=1e-12)
    with pytest.raises(KeyboardInterrupt), pytest.warns(NotConvergedWarning):
        svm.fit(*data())
    assert svm.predict(data()[0]).shape == (300,)
    (last,) = shell.cells()
    assert re.match(r"LinearSVM: training was interrupted, gap [\d.]+; the model so far is kept", repr(last))


def test_a_display_that_fails_ends_no_training(shell, monkeypatch):
    calls = []

    def failing(*_, **__):
        calls.append(1)
        raise OSError("the front end is gone")

    monkeypatch.setattr(sys.modules["IPython.display"], "display", failing)
    assert LinearSVM().fit(*data()).result_.converged
    assert len(calls) == 1


def test_an_error_ends_the_line(shell):
    @notebook.followed(Course)
    def fit(svm, on_progress=None):
        on_progress(Progress(1, 0.1, 2.0, 1.0, 0.5, 3, 3), 0, 1)
        raise DotaddError("no")

    with pytest.raises(DotaddError):
        fit(LinearSVM())
    assert "ended by an error" in repr(shell.cells()[0])


def test_a_warning_points_to_who_called_fit(shell):
    with pytest.warns(NotConvergedWarning) as told:
        LinearSVM(max_passes=1).fit(*data())
    assert told[0].filename == __file__


def test_names_in_lines_are_text():
    tree = ElementTree.fromstring(notebook.NotebookLine(0.5, "<b>x</b> & y")._repr_html_())
    assert "".join(tree.itertext()).strip() == "<b>x</b> & y"


def test_ipython_itself_is_given_one_place_and_changes_of_it(monkeypatch):
    pytest.importorskip("IPython")
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance(display_pub_class=CapturingDisplayPublisher)
    try:
        shell.kernel = object()
        monkeypatch.setattr(notebook, "CELL", notebook.CellLine())
        monkeypatch.setattr(notebook, "AFTER", 0.0)
        monkeypatch.setattr(notebook, "EVERY", 0.0)
        LinearSVM().fit(*data())
        outputs = shell.display_pub.outputs
        assert [output["update"] for output in outputs] == [False] + [True] * (len(outputs) - 1)
        assert len({output["transient"]["display_id"] for output in outputs}) == 1
        assert "<progress" in outputs[-1]["data"]["text/html"]
        assert outputs[-1]["data"]["text/plain"].startswith("LinearSVM: ")
    finally:
        InteractiveShell.clear_instance()
