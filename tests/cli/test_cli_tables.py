"""Tables on screen: every number is there whole, in its row and in order, however narrow the screen is."""

import re

import numpy as np
import pytest

from dotadd.cli.predict import Measured, show_measures
from dotadd.cli.screen import FOLD, LONGEST, shortened, show_table
from dotadd.model import evaluation

STYLE = re.compile("\x1b\\[[0-9;]*m")


def on_screen(monkeypatch, width):
    """A terminal of this width, or none."""
    if width is None:
        monkeypatch.setenv("COLUMNS", "40")  # a pipe has no width, whatever the terminal before it has
    else:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", str(width))


def read_back(shown):
    """The cells of each row by its first word, from all tables in order."""
    found = {}
    for line in STYLE.sub("", shown).splitlines():
        first, *cells = line.split() or [""]
        if re.match(r"row\d", first):
            found.setdefault(first, []).extend(cells)
    return found


@pytest.mark.parametrize("width", [None, 1, 20, 40, 79, 80, 81, 200])
@pytest.mark.parametrize("columns", [1, 2, 7, 25])
def test_every_number_is_there_whole_and_in_order(monkeypatch, capsys, width, columns):
    on_screen(monkeypatch, width)
    rng = np.random.default_rng(columns)
    rows = [[f"row{k}", *(f"{10 ** rng.integers(0, 10):,}" for _ in range(columns))] for k in range(4)]
    show_table(["true \\ predicted", *(f"class {k} with a long name" for k in range(columns))], rows)
    shown = capsys.readouterr().out
    assert read_back(shown) == {first: cells for first, *cells in rows}
    assert "…" not in shown
    if width is None:
        assert shown.count("──")
        assert len({len(line) for line in shown.splitlines()} - {0}) <= 2
    elif width >= 40:  # room for one column at least
        assert max(len(line) for line in STYLE.sub("", shown).splitlines()) <= width


def test_names_are_folded_and_never_endless(monkeypatch, capsys):
    on_screen(monkeypatch, None)
    show_table(["class", "x" * 10_000], [["y" * 10_000, "1"]])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) < 2 * FOLD + 10
    assert shown.count("y") == LONGEST - 1
    assert shortened("é" * LONGEST) == "é" * LONGEST
    assert len(shortened("\x1b" * LONGEST)) == LONGEST


@pytest.mark.parametrize("width", [None, 80])
def test_many_classes_are_shown_a_line_each(monkeypatch, capsys, width):
    on_screen(monkeypatch, width)
    classes = np.array([f"row{k:03}" for k in range(100)])
    rng = np.random.default_rng(0)
    truth, scores = rng.choice(classes, 1000), rng.standard_normal((1000, 100))

    class Model:
        threshold = None

    Model.classes = classes
    found = evaluation.evaluate(truth, scores, classes)
    show_measures(Model, Measured(found, 1.0))
    lines = read_back(capsys.readouterr().out)
    assert set(lines) == set(classes)
    for k, label in enumerate(classes):
        rows, right, other, times, *areas = lines[label]
        at = classes.tolist().index(other)
        assert (int(rows), int(right)) == (found.confusion[k].sum(), found.confusion[k, k])
        assert int(times) == found.confusion[k, at] == np.delete(found.confusion[k], k).max()
        assert areas == [f"{measure[k]:.4f}" for measure in (found.f1, found.auroc, found.auprc)]
