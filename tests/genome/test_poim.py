"""Positional oligomer importance is what its definition says, and the picture of it can be drawn."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from dotadd import DotaddError, LinearSVM, letter_chances, oligomer_importance, parse
from dotadd.cli import run
from dotadd.data.batches import Strings
from dotadd.features.base import Shape
from dotadd.genome.poim import Poim
from dotadd.model.linear import Model
from dotadd.report.poim import draw_poim


def model_of(expression: str, length: int, *, seed: int = 0, classes: int = 2) -> Model:
    """A model with random weights."""
    shape = Shape("strings", length=length)
    phi = parse(expression).resolve(shape)
    rows = 1 if classes == 2 else classes
    w = np.random.default_rng(seed).normal(size=(rows, phi.dim))
    return Model(phi, shape, w, np.arange(rows) + 0.5, np.arange(classes))


def definition(model: Model, letters: str, p: np.ndarray, u: str, i: int) -> float:
    """E[s(X) | X[i:i+k] = u] - E[s(X)] by going through all strings."""
    everything = ["".join(z) for z in itertools.product(letters, repeat=len(p))]
    chance = np.array([np.prod([p[j, letters.index(a)] for j, a in enumerate(z)]) for z in everything])
    scores = model.decision_function(everything)
    has = np.array([z[i : i + len(u)] == u for z in everything])
    return (chance[has] @ scores[has]) / chance[has].sum() - chance @ scores


@pytest.mark.parametrize("expression", ["WeightedDegree(4, alphabet='ab').hashed(3)", "Spectrum(2, alphabet='ab')"])
@pytest.mark.parametrize("ratio", [(1, 1), (1, 3)])
def test_over_all_strings_it_equals_its_definition(expression, ratio):
    length = 5
    model = model_of(expression, length)
    bag = "a" * ratio[0] + "b" * ratio[1]  # every string as often as its chance demands
    strings = Strings.from_list(["".join(z) for z in itertools.product(bag, repeat=length)])
    p = np.array(ratio) / sum(ratio)
    poim = oligomer_importance(model, order=3, chances=p, strings=strings)
    for k in (1, 2, 3):
        assert poim.importance[k - 1].shape == (length - k + 1, 2**k)
        for i, number in np.ndindex(*poim.importance[k - 1].shape):
            wanted = definition(model, "ab", np.tile(p, (length, 1)), poim.kmer(k, number), i)
            assert poim.importance[k - 1][i, number] == pytest.approx(wanted, abs=1e-9)


def test_random_strings_come_as_near_as_the_standard_error_says():
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(2) * 4, 5)
    model = model_of("WeightedDegree(5, alphabet='ab')", 5)
    poim = oligomer_importance(model, order=2, samples=2000, chances=p, seed=1)
    for k in (1, 2):
        found, error = poim.importance[k - 1], poim.error[k - 1]
        wanted = [[definition(model, "ab", p, poim.kmer(k, u), i) for u in range(2**k)] for i in range(6 - k)]
        apart = np.abs(found - wanted)
        assert (apart <= 4.5 * error + 1e-9).all()
        assert (apart > 0.1 * error).mean() > 0.5  # and the error is no larger than it has to be


def test_letters_that_count_alone_have_their_weights_whatever_the_sample():
    model = model_of("WeightedDegree(1)", 7)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    w = model.w.reshape(7, 4)
    for order in (1, 3):
        poim = oligomer_importance(model, order=order, samples=2, chances=p)
        assert poim.importance[0] == pytest.approx(w - (w @ p)[:, None], abs=1e-9)
        assert poim.error[0] == pytest.approx(0, abs=1e-9)


def test_importance_balances_at_every_position_and_order():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 8)
    poim = oligomer_importance(model_of("WeightedSpectrum(3) + WeightedDegree(4)", 8), samples=3, chances=p)
    for k, q in enumerate(poim.importance, 1):
        for i, row in enumerate(q):
            chance = [np.prod([p[i + j, "ACGT".index(a)] for j, a in enumerate(poim.kmer(k, u))]) for u in range(4**k)]
            assert np.dot(chance, row) == pytest.approx(0, abs=1e-9)
    shorter = poim.importance[1].reshape(7, 4, 4)
    assert np.einsum("iab,ib->ia", shorter, p[1:]) == pytest.approx(poim.importance[0][:7], abs=1e-9)


def test_what_cannot_occur_is_left_out_of_the_strongest():
    p = np.full((4, 4), 0.25)
    p[1] = [0, 0, 1, 0]
    poim = oligomer_importance(model_of("WeightedDegree(2)", 4), order=2, samples=4, chances=p)
    assert {text[0] for i, text, *_ in poim.strongest(2, 999) if i == 1} == {"G"}
    assert {text[1] for i, text, *_ in poim.strongest(2, 999) if i == 0} == {"G"}
    sizes = [abs(found.importance) for found in poim.strongest(2, 999)]
    assert sizes == sorted(sizes, reverse=True)
    assert poim.differential()[1, 0] == max(abs(f.importance) for f in poim.strongest(2, 999) if f.position == 0)
    assert poim.differential()[0, 1] == pytest.approx(0)
    assert np.isnan(poim.differential()[1, 3])


def test_one_class_of_several_is_explained():
    model = model_of("WeightedDegree(1)", 3, classes=3)
    poim = oligomer_importance(model, order=1, samples=2, target=2)
    w = model.w[2].reshape(3, 4)
    assert poim.importance[0] == pytest.approx(w - w.mean(axis=1, keepdims=True), abs=1e-9)
    with pytest.raises(DotaddError, match="choose one of"):
        oligomer_importance(model, order=1)


def test_letter_chances_are_frequencies_by_position():
    model = model_of("WeightedDegree(2)", 4)
    found = letter_chances(["ACG", "aCt", "AGN", "CC"], model)
    assert found[0] == pytest.approx([3 / 4, 1 / 4, 0, 0])
    assert found[1] == pytest.approx([0, 3 / 4, 1 / 4, 0])
    assert found[2] == pytest.approx([0, 0, 1 / 2, 1 / 2])
    assert found[3] == pytest.approx([3 / 10, 4 / 10, 2 / 10, 1 / 10])  # no string is so long
    assert letter_chances(["AAAA", "CCCC"], model, rows=1)[:, 0].tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"order": 0}, "order 0"),
        ({"order": 6}, "order 6"),
        ({"samples": 1}, "at least 2"),
        ({"chances": [0.5, 0.5]}, "chances"),
        ({"chances": [0.5, 0.5, 0.5, 0.5]}, "chances"),
        ({"target": 0}, "second"),
        ({"strings": Strings.from_list(["ACG"])}, "5 letters"),
    ],
)
def test_what_makes_no_sense_is_refused(change, complaint):
    with pytest.raises(DotaddError, match=complaint):
        oligomer_importance(model_of("Spectrum(1)", 5), **change)


def test_maps_without_a_small_alphabet_are_refused():
    for model in (model_of("NGrams(2, bits=4)", 5), model_of("BagOfWords(bits=4)", 5)):
        with pytest.raises(DotaddError, match="maps of strings"):
            oligomer_importance(model)


@pytest.fixture(scope="module")
def poim() -> Poim:
    p = np.full((9, 4), 0.25)
    p[4:6] = [[1, 0, 0, 0], [0, 0, 1, 0]]
    return oligomer_importance(model_of("WeightedDegree(3).hashed(5)", 9), samples=3, chances=p)


def test_pictures_are_drawn_in_every_format_and_names_are_no_markup(poim, tmp_path):
    title = "$\\frac{x$ <script>&\x01.dotadd"
    for kind, magic in {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}.items():
        path = tmp_path / f"picture.{kind}"
        draw_poim(poim, path, title=title, subtitle=title)
        assert path.read_bytes().startswith(magic)
    texts = [e.text for e in ElementTree.parse(tmp_path / "picture.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert "$\\frac{x$ <script>&\\x01.dotadd" in texts  # as a terminal shows it
    assert "AG" in texts
    assert "<script>" not in (tmp_path / "picture.html").read_text()
    again = tmp_path / "again.svg"
    draw_poim(poim, again, title=title, subtitle=title)
    assert again.read_bytes() == (tmp_path / "picture.svg").read_bytes()


def test_a_picture_that_cannot_be_drawn_leaves_nothing_behind(poim, tmp_path, monkeypatch):
    with pytest.raises(DotaddError, match=r"\.svg, \.png"):
        draw_poim(poim, tmp_path / "picture.txt")
    monkeypatch.setattr("dotadd.report.poim.poim_figure", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        draw_poim(poim, tmp_path / "picture.svg")
    assert list(tmp_path.iterdir()) == []


def test_the_command_draws_and_says_what_is_missing(tmp_path, monkeypatch, capsys, forbid_matplotlib):
    monkeypatch.chdir(tmp_path)
    strings = ["ACGTA", "TCGAA", "ACTTA", "GCAAC"] * 3
    LinearSVM(parse("WeightedDegree(2)"), random_state=0).fit(strings, [1, 0, 1, 0] * 3).model_.save("m.dotadd")
    (tmp_path / "x.csv").write_text("seq,label\n" + "".join(f"{z},1\n" for z in strings))
    assert run(["inspect", "m.dotadd", "--poim", "a.svg", "--order", "2", "--samples", "3"]) == 0
    assert run(["inspect", "m.dotadd", "--poim", "b.svg", "--order", "2", "--samples", "3", "--data", "x.csv"]) == 0
    assert "x.csv" in (tmp_path / "b.svg").read_text()
    assert (tmp_path / "a.svg").read_text() != (tmp_path / "b.svg").read_text()
    capsys.readouterr()
    for option, complaint in {
        "--poim=a.txt": ".html",
        "--poim=no/a.svg": "does not exist",
        "--poim=c.svg --order=9": "order 9",
        "--poim=c.svg --samples=1": "at least 2",
        "--poim=c.svg --class=7": "second",
    }.items():
        assert run(["inspect", "m.dotadd", *option.split()]) == 2
        assert complaint in capsys.readouterr().err
    forbid_matplotlib()
    assert run(["inspect", "m.dotadd", "--poim", "c.svg"]) == 2
    assert "pip install 'dotadd[plots]'" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "b.svg", "m.dotadd", "x.csv"]
