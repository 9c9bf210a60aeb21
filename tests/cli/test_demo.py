"""The demo's data is what it says, and its words follow its numbers."""

import importlib

import numpy as np
import pytest

from dotadd.cli import run
from dotadd.features.base import Shape
from dotadd.features.expression import parse
from dotadd.genome.simulate import LENGTH, SITE, splice_windows
from dotadd.model.linear import load

demo = importlib.import_module("dotadd.cli.demo")  # the package's attribute of this name is the command


def letters(batch):
    return batch.letters.reshape(-1, LENGTH)


def test_windows_have_the_site_in_the_middle_and_one_in_a_hundred_is_true():
    batch, y = splice_windows(3000)
    assert len(batch) == len(y) == 3000
    assert np.count_nonzero(y == 1) == 30
    assert set(np.unique(y)) == {-1, 1}
    assert set(letters(batch).ravel()) == set(b"ACGT")
    assert (letters(batch)[:, SITE] == ord("A")).all()
    assert (letters(batch)[:, SITE + 1] == ord("G")).all()


def test_the_same_seed_gives_the_same_windows_and_another_gives_others():
    (a, ya), (b, yb), (c, _) = (splice_windows(500, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(a.letters, b.letters)
    assert np.array_equal(ya, yb)
    assert not np.array_equal(a.letters, c.letters)


def counts(windows, first, k):
    """How often each k-mer starts at position `first`."""
    codes = np.searchsorted(np.frombuffer(b"ACGT", np.uint8), windows[:, first : first + k]).astype(np.int64)
    return np.bincount(codes @ (4 ** np.arange(k)), minlength=4**k) / len(windows)


def test_wrongly_joined_motifs_differ_from_right_ones_only_across_the_core():
    from dotadd.genome import simulate

    rng = np.random.default_rng(0)
    rows = np.arange(20000)
    right, wrong = np.zeros((2, 20000, LENGTH), np.uint8)
    simulate._write_motifs(rng, right, rows, right_pair=True, in_place=True)
    simulate._write_motifs(rng, wrong, rows, right_pair=False, in_place=True)
    first = simulate._PLACES[0]
    ascii_letters = np.frombuffer(b"ACGT", np.uint8)
    right, wrong = ascii_letters[right], ascii_letters[wrong]
    flank, core = simulate._FLANK, simulate._CORE
    for start in (first, first + flank):  # left flank and core; core and right flank
        assert np.abs(counts(right, start, flank + core) - counts(wrong, start, flank + core)).max() < 0.02
    whole = counts(right, first + flank - 1, core + 2) - counts(wrong, first + flank - 1, core + 2)
    assert np.abs(whole).max() > 0.02


@pytest.mark.parametrize(
    ("auprc", "helped"),
    [
        ([0.1, 0.2, 0.1, 0.3, 0.2, 0.5], True),
        ([0.1, 0.2, 0.1, 0.6, 0.2, 0.5], False),
        ([0.1, 0.2, 0.1, 0.3, 0.6, 0.5], False),
    ],
)
def test_conclusions_follow_the_numbers(capsys, auprc, helped):
    cases = [(name, rows) for name in demo.MAPS for rows in (100, 200)]
    outcomes = [demo.Outcome(name, rows, 0.5, a, 1.0, None) for (name, rows), a in zip(cases, auprc, strict=True)]
    assert demo.conclude(outcomes) is helped
    shown = capsys.readouterr().out
    assert f"More data {'helps' if auprc[5] > auprc[4] else 'does not help'}" in shown
    assert f"Higher order {'helps' if auprc[5] > max(auprc[1], auprc[3]) else 'does not help'}" in shown
    assert f"{auprc[5]:.3f}" in shown


def test_the_fast_demo_shows_a_table_and_saves_its_best_model(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "FAST_SIZES", (200, 1500))
    monkeypatch.setattr(demo, "FAST_TEST_ROWS", 2000)
    code = run(["demo", "--fast", "-o", str(tmp_path / "m")])
    shown = capsys.readouterr().out
    assert code in (0, 1)
    assert code == ("does not help" in shown)
    for name in demo.MAPS:
        assert shown.count(name) >= 3
    assert load(tmp_path / "m").phi in [
        parse(text).resolve(Shape("strings", length=LENGTH)) for text in demo.MAPS.values()
    ]
