"""Stretches: DOT and lengths of places that share letters are those of the windows cut out, however they lie."""

from __future__ import annotations

import numpy as np
import pytest

from dotadd import Spectrum, WeightedDegree, WeightedSpectrum
from dotadd.data.places import Places, Text, numbered
from dotadd.features.base import Shape
from dotadd.features.kmer_stretches import SharedWindows, stretches

WIDTH = 61
TABLES = [
    WeightedDegree(4),
    WeightedDegree(3, span=(5, 40)),
    WeightedDegree(13).hashed(6),
    WeightedDegree(9, weights=(0, 1, 2, 0, 0, 3, 0, 1, 1)).hashed(4),
    WeightedDegree(61).hashed(5),
]
SPECTRA = [
    Spectrum(1),
    Spectrum(5),
    Spectrum(10, span=(3, 50)),
    WeightedSpectrum(8, span=(0, 29)),
    WeightedSpectrum(10),
    WeightedSpectrum(8, span=(0, 3)),
    WeightedSpectrum(3, weights=(1, 0, 2), span=(-20, None)),
]


def text_of(size, letters, seed=0):
    text, rng = Text(), np.random.default_rng(seed)
    text.add(rng.choice(np.frombuffer(letters.encode(), np.uint8), size))
    return text


def dense(letters="ACGT", size=6000, seed=0):
    """All places of both strands, in the order of a scan, and some of them again."""
    text = text_of(size, letters, seed)
    at = np.arange(size - WIDTH + 1)
    starts = np.stack([at, 2 * size - WIDTH - at], axis=1).reshape(-1)
    return Places(text, numbered(np.r_[starts, starts[100:200]], len(text)), width=WIDTH)


def sparse(letters="ACGT", size=9000):
    """A fifth of all places, in random order, in two stretches."""
    places = dense(letters, size)
    rng = np.random.default_rng(1)
    rows = rng.permutation(np.flatnonzero(rng.random(len(places)) < 1 / 5))
    return places.take(rows)


def used(monkeypatch, name):
    """How often the other way was gone."""
    told = []
    inside = getattr(SharedWindows, name)
    monkeypatch.setattr(SharedWindows, name, lambda *a: told.append(inside(*a)) or told[-1])
    return told


@pytest.mark.parametrize("letters", ["ACGT", "ACGT" * 30 + "N"])
@pytest.mark.parametrize("phi", SPECTRA, ids=repr)
def test_spectra_of_places_are_those_of_windows_cut_out(phi, letters, monkeypatch):
    dots, lengths = used(monkeypatch, "spectrum_dot"), used(monkeypatch, "spectrum_lengths")
    for places in (dense(letters), sparse(letters)):
        bound, cut = phi.resolve(Shape.of(places)), places.together()
        rows, w = np.arange(len(places)), np.random.default_rng(2).standard_normal(bound.dim).astype(np.float32)
        outs = [np.ones(len(rows)) for _ in range(2)]
        for batch, out in zip((places, cut), outs, strict=True):
            bound.dot(batch, rows, w, out)
        np.testing.assert_allclose(outs[0], outs[1], rtol=1e-10, atol=1e-10)
        squared = [bound.squared_norms(batch, rows) for batch in (places, cut)]
        np.testing.assert_allclose(*squared, rtol=1e-14)
    assert dots == lengths == [True, True]


@pytest.mark.parametrize("phi", TABLES, ids=repr)
def test_tables_of_places_are_those_of_windows_cut_out(phi, monkeypatch):
    told = used(monkeypatch, "tables_dot")
    for places, shares in ((dense(), True), (sparse(), False)):
        bound, cut = phi.resolve(Shape.of(places)), places.together()
        rows, w = np.arange(len(places)), np.random.default_rng(2).standard_normal(bound.dim).astype(np.float32)
        outs = [np.ones(len(rows)) for _ in range(2)]
        for batch, out in zip((places, cut), outs, strict=True):
            bound.dot(batch, rows, w, out)
        np.testing.assert_allclose(outs[0], outs[1], rtol=1e-10, atol=1e-10)
        assert np.array_equal(bound.squared_norms(places, rows), bound.squared_norms(cut, rows))
        assert told.pop() is shares


def test_windows_with_foreign_letters_have_the_tables_of_windows_cut_out():
    places = dense("ACGT" * 30 + "N")
    phi, cut, rows = WeightedDegree(7, length=WIDTH).hashed(5), places.together(), np.arange(len(places))
    w = np.random.default_rng(2).standard_normal(phi.dim).astype(np.float32)
    outs = [np.zeros(len(rows)) for _ in range(2)]
    for batch, out in zip((places, cut), outs, strict=True):
        phi.dot(batch, rows, w, out)
    np.testing.assert_allclose(outs[0], outs[1], rtol=1e-10, atol=1e-10)
    assert np.array_equal(phi.squared_norms(places, rows), phi.squared_norms(cut, rows))


def test_stretches_hold_every_place_once_and_none_where_they_are_rare():
    rng = np.random.default_rng(0)
    starts = np.r_[rng.integers(0, 5000, 900), rng.integers(70_000, 71_000, 500), rng.integers(10**6, 10**6 + 900, 400)]
    found = stretches(starts, 24)
    assert sorted(np.concatenate([one.rows for one in found]).tolist()) == list(range(len(starts)))
    for rows, first, at in found:
        assert np.array_equal(first + at, starts[rows])
    assert stretches(np.arange(0, 10**6, 1000), 24) is None
    assert stretches(np.arange(100), 24) is None
