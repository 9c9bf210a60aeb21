"""Pictures are drawn from the numbers they are said to be drawn from, and hold whatever users name as text."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from dotadd._util.wording import card
from dotadd.errors import DotaddError, one_line
from dotadd.explain.logo import HIGH as LOGO_HIGH
from dotadd.explain.logo import stacked
from dotadd.model.proper_scores import ProperScores
from dotadd.model.ranking import Ranking
from dotadd.pictures import picture
from dotadd.pictures.curves import calibration, convergence, precision_recall, roc
from dotadd.pictures.grids import MOST, confusion, gathered, heat
from dotadd.pictures.picture import HIGH, LEFT, RIGHT, TOP, WIDTH, Curve, Scale, thinned

SVG = "{http://www.w3.org/2000/svg}"


def rows(n, seed=0, *, ties=False):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    score = rng.standard_normal(n) + y
    return y, np.round(score, 1) if ties else score


def drawn(found, number=0):
    """The points of the line of this number, in the units of the axes."""
    lines = [
        path.get("d")
        for path in ElementTree.fromstring(found.svg).iter(f"{SVG}path")
        if path.get("stroke-width") == "2" and "h22" not in path.get("d")
    ]
    points = np.array(re.findall(r"[ML]([-\d.]+) ([-\d.]+)", lines[number]), float)
    return (points[:, 0] - LEFT) / (WIDTH - LEFT - RIGHT), 1.0 - (points[:, 1] - TOP) / HIGH


@pytest.mark.parametrize("ties", [False, True])
def test_rankings_have_the_curves_of_scikit_learn(ties):
    y, score = rows(500, ties=ties)
    ranking = Ranking.of(y, score)
    false, true, _ = roc_curve(y, score, drop_intermediate=False)
    assert np.allclose(ranking.roc(), (false, true))
    precision, recall, thresholds = precision_recall_curve(y, score)
    met = np.isin(thresholds, score[y])
    expected = recall[:-1][met][::-1], precision[:-1][met][::-1]
    assert np.allclose(ranking.precision_recall(), expected)
    true, false = ranking.above(0.5)
    assert (true, false) == ((score[y] > 0.5).sum(), (score[~y] > 0.5).sum())


@pytest.mark.parametrize(("n", "ties"), [(40, True), (500, False), (60_000, False)])
def test_the_area_under_the_drawn_line_is_the_area_that_is_told(n, ties):
    y, score = rows(n, ties=ties)
    ranking = Ranking.of(y, score)
    x, height = drawn(roc([Curve("", *ranking.roc())]))
    assert np.trapezoid(height, x) == pytest.approx(roc_auc_score(y, score), abs=2e-3)
    x, height = drawn(precision_recall([Curve("", *ranking.precision_recall())]))
    assert np.trapezoid(height, x) == pytest.approx(average_precision_score(y, score), abs=3e-3)
    assert len(x) <= 8 * picture.COLUMNS


def test_thinning_keeps_the_highest_and_the_lowest_of_each_column():
    rng = np.random.default_rng(1)
    x, y = np.sort(rng.random(20_000)), rng.standard_normal(20_000)
    few, heights = thinned(x, y)
    assert len(few) <= 4 * picture.COLUMNS
    assert set(zip(few, heights, strict=True)) <= set(zip(x, y, strict=True))
    edges = np.linspace(x[0], x[-1], picture.COLUMNS + 1)[1:-1]
    for k in (0, 17, picture.COLUMNS - 1):
        all_of, kept = (values[np.digitize(at, edges) == k] for at, values in ((x, y), (few, heights)))
        assert (kept.min(), kept.max()) == (all_of.min(), all_of.max())


def test_marks_of_calibration_stand_where_scikit_learn_has_them():
    rng = np.random.default_rng(2)
    p = rng.random(3000)
    y = (rng.random(3000) < p**2).astype(np.int64)
    seen = ProperScores()
    seen.see(y, np.stack([1.0 - p, p], axis=1))
    happened, said = calibration_curve(y, p, n_bins=15)
    marks = ElementTree.fromstring(calibration(*seen.bins(), "yes").svg).iter(f"{SVG}circle")
    found = np.array([(float(mark.get("cx")), float(mark.get("cy"))) for mark in marks])
    assert (found[:, 0] - LEFT) / (WIDTH - LEFT - RIGHT) == pytest.approx(said, abs=1e-3)
    assert 1.0 - (found[:, 1] - TOP) / HIGH == pytest.approx(happened, abs=1e-3)


def test_many_classes_are_counted_together_and_none_is_lost():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 50, (40, 40))
    few, names = gathered(counts.astype(float), [f"c{k}" for k in range(40)])
    assert len(names) == len(few) == MOST
    assert few.sum() == counts.sum()
    kept = [int(name[1:]) for name in names[:-1]]
    assert (few[:-1, :-1] == counts[np.ix_(kept, kept)]).all()
    assert few[:-1, -1].tolist() == np.delete(counts[kept], kept, axis=1).sum(axis=1).tolist()
    ElementTree.fromstring(confusion(counts, [f"c{k}" for k in range(40)]).svg)


@given(st.floats(-1e12, 1e12), st.floats(0.0, 1e12))
def test_numbers_along_an_axis_are_few_and_within_it(low, wide):
    scale = Scale.linear(np.array([low, low + wide]))
    assert scale.low < scale.high
    assert 1 <= len(scale.ticks) <= 8
    room = 1e-6 * (scale.high - scale.low)
    assert all(scale.low - room <= tick <= scale.high + room for tick in scale.ticks)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=20))
def test_whatever_a_solver_told_can_be_drawn(gaps):
    found = convergence([Curve("a", np.arange(len(gaps), dtype=float), np.array(gaps))], "gap", 1e-3)
    assert "nan" not in found.svg
    assert "inf" not in found.svg
    ElementTree.fromstring(found.svg)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_names_are_text_whatever_stands_in_them(name):
    curve = Curve(name, np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    values = np.array([[1.0, -2.0, np.nan]])
    pictures = [
        roc([curve]).svg, precision_recall([curve]).svg, confusion(np.eye(2), [name, "b"]).svg,
        calibration(np.ones(2), np.ones(2), np.ones(2), name).svg, heat(values, [name], name, "position").svg,
    ]  # fmt: skip
    for svg in pictures:
        element = ElementTree.fromstring(svg)
        told = {part.text for part in element.iter(f"{SVG}text") if part.text} | {""}
        assert {part.tag.removeprefix(SVG) for part in element.iter()} <= {
            "svg", "path", "text", "g", "circle", "rect", "title",
        }  # fmt: skip
        assert any(one_line(name)[:4] in one for one in told)
    ElementTree.fromstring(card(name, {name: name}))


def test_a_stack_of_letters_is_as_high_as_what_they_add():
    adds = np.array([[0.5, 0.25, -0.75, 0.0], [0.1, -0.1, 0.3, -0.3]])
    letters = [
        (float(scale), float(y))
        for y, scale in re.findall(r"translate\([\d.]+ ([\d.]+)\) scale\([\d.]+ ([\d.]+)\)", stacked("ACGT", adds))
    ]
    reach = 0.75 + 0.75
    heights = sorted(100.0 * scale for scale, _ in letters)
    assert heights == pytest.approx(sorted(LOGO_HIGH * np.abs(adds[adds != 0.0]) / reach), abs=0.01)
    ElementTree.fromstring(stacked("ACGT", adds, "<title>"))


def test_a_picture_is_written_as_svg_and_as_nothing_else(tmp_path):
    found = roc([Curve("a", np.array([0.0, 1.0]), np.array([0.0, 1.0]))])
    found.save(tmp_path / "a.svg")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag == f"{SVG}svg"
    assert found._repr_svg_() == (tmp_path / "a.svg").read_text()
    with pytest.raises(DotaddError, match=r"written as \.svg"):
        found.save(tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]
