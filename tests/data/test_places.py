"""Places: the same rows, features, fits and files as the windows that they stand for, in a fraction of the memory."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
from naive_genome import fasta, gff3, random_transcripts, reverse_complement, with_signals

from dotadd import KernelSVM, LinearSVM, Spectrum, WeightedDegree, Windows, check_feature_map, convert, load
from dotadd import open as open_source
from dotadd.core.block import Block
from dotadd.data.batches import Strings, pack
from dotadd.data.places import Places, Text, numbered
from dotadd.data.pool import Pool
from dotadd.data.ragged import joined
from dotadd.data.transforms import reverse_complement as both_strands
from dotadd.data.transforms import shift
from dotadd.features import kmer_stretches

WIDTH = 23
MAPS = [
    WeightedDegree(4),
    WeightedDegree(9).hashed(5).normalized(),
    Spectrum(3, span=(2, -3)).normalized(),
    WeightedDegree(3) + 2.0 * Spectrum(2, strands="both"),
]


def sequences(*sizes, letters="ACGT", seed=0):
    rng = random.Random(seed)
    return ["".join(rng.choices(letters, k=size)) for size in sizes]


def both(texts, rows=None):
    """Places on both strands of these sequences, and the same strings cut by Python."""
    text, starts, strings = Text(), [], []
    for one in texts:
        base = text.add(np.frombuffer(one.encode(), np.uint8))
        for strand, letters in enumerate((one, reverse_complement(one))):
            for at in range(len(one) - WIDTH + 1):
                starts.append(base + strand * len(one) + at)
                strings.append(letters[at : at + WIDTH])
    order = np.random.default_rng(1).permutation(len(starts))[:rows]
    places = Places(text, numbered(np.array(starts)[order], len(text)), width=WIDTH)
    return places, Strings.from_list([strings[k] for k in order]), [strings[k] for k in order]


def rows_of(batch):
    return [batch[row].decode() for row in range(len(batch))]


def test_a_place_reads_as_the_window_that_begins_there_on_either_strand():
    places, _, expected = both(sequences(60, 40, 31, letters="ACGTN"))
    assert rows_of(places) == expected
    assert rows_of(places.together()) == expected
    assert places.together().width == WIDTH


@pytest.mark.parametrize("letters", ["ACGT", "ACGTN"])
def test_the_other_strand_of_a_place_is_a_place(letters):
    places, _, expected = both(sequences(60, 40, 31, letters=letters))
    rows = np.arange(len(places))
    turned = both_strands().apply(places, rows, rows % 2)
    assert isinstance(turned, Places)
    assert turned.text is places.text
    assert rows_of(turned) == [reverse_complement(one) if r % 2 else one for r, one in enumerate(expected)]
    assert rows_of(turned.other_strand(rows, rows % 2 == 1)) == expected
    moved = shift(2).apply(places, rows, rows % 5)  # no place, since letters leave the text
    assert rows_of(moved) == rows_of(shift(2).apply(places.together(), rows, rows % 5))


@pytest.mark.parametrize("phi", MAPS, ids=repr)
def test_a_batch_of_places_has_the_blocks_of_the_windows_that_it_stands_for(phi):
    places, strings, _ = both(sequences(90, 40))
    strings = Strings(strings.letters, width=WIDTH)
    bound, rows = phi.resolve(dotted(places)), np.random.default_rng(2).permutation(len(places))[:50]
    blocks = []
    for batch in (places, strings):
        block = Block.scratch(np.full(len(rows), bound.bound(batch)), bound.dim)
        bound.prepared(batch).fill(batch, rows, block)
        blocks.append(block)
    for name in ("start", "end", "indices", "values"):
        assert np.array_equal(getattr(blocks[0], name), getattr(blocks[1], name))
    check_feature_map(phi, places)


def dotted(batch):
    from dotadd.features.base import Shape

    shape = Shape.of(batch)
    assert shape == Shape("strings", length=WIDTH, one_length=True)
    return shape


def test_take_slice_join_and_pool_move_places_and_never_letters():
    places, _, expected = both(sequences(80, 50))
    rows = np.array([5, 3, 3, 40])
    assert rows_of(places.take(rows)) == [expected[r] for r in rows]
    assert rows_of(places.slice(4, 9)) == expected[4:9]
    again = joined([places.slice(0, 7), places.slice(7, len(places))])
    assert rows_of(again) == expected
    assert again.text is places.text
    assert places.row_bytes().tolist() == [4] * len(places)
    pool = Pool.like(places, 1 << 20, 0)
    first = pool.put(places.slice(0, 10))
    pool.free(first[:3])
    more = pool.put(places.slice(10, 15))
    assert [pool.batch[int(p)].decode() for p in [*first[3:], *more]] == expected[3:15]
    assert pool.batch.text is places.text


def test_places_in_two_texts_are_joined_in_one_that_has_the_letters_of_both():
    (a, _, one), (b, _, two) = both(sequences(50)), both(sequences(45, 30, seed=3))
    assert rows_of(joined([a, b, a.slice(0, 4)])) == [*one, *two, *one[:4]]
    empty = a.slice(0, 0)
    assert rows_of(joined([empty, b, empty])) == two
    together = joined([a, b])
    rows = np.arange(len(together))
    turned = rows_of(together.other_strand(rows, np.ones(len(rows), np.bool_)))
    assert turned == [reverse_complement(text) for text in one + two]
    pool = Pool.like(a, 1 << 20, 0)
    assert pool.takes(a)
    assert not pool.takes(b)  # numbers of another text would mean other letters


def test_places_of_different_widths_are_not_joined():
    places, _, _ = both(sequences(50))
    other = Places(places.text, places.starts, width=WIDTH + 1)
    with pytest.raises(ValueError, match="windows of 24 letters cannot be joined with windows of 23"):
        joined([places, other])


def test_foreign_letters_are_found_where_they_stand():
    places, strings, expected = both(sequences(170, 40, letters="ACGT" * 12 + "N"))
    assert any("N" in one for one in expected)
    phi = WeightedDegree(3, length=WIDTH)
    found = phi.check(places)
    assert (found.row, found.column, found.message) == tuple(
        getattr(phi.check(strings), name) for name in ("row", "column", "message")
    )
    clean = places.take(np.array([r for r, one in enumerate(expected) if "N" not in one]))
    assert phi.check(clean) is None


def test_places_are_packed_as_windows_are():
    places, _, expected = both(sequences(70))
    assert np.array_equal(pack(places, WIDTH), pack(Strings.from_list(expected), WIDTH))


@pytest.fixture
def genome(tmp_path):
    rng = random.Random(4)
    made = {f"chr{k}": "".join(rng.choices("ACGT", k=size)) for k, size in enumerate((9000, 300, 2500))}
    transcripts = random_transcripts(rng, made, 60)
    (tmp_path / "g.fa").write_text(fasta(with_signals(made, transcripts)))
    (tmp_path / "g.gff3").write_text(gff3(transcripts, rng))
    return tmp_path / "g.fa", tmp_path / "g.gff3"


def kinds(genome, **options):
    return [Windows(*genome, signal="acceptor", length=30, places=places, **options) for places in (True, False)]


def test_places_and_cut_windows_are_the_same_rows(genome):
    for options in ({}, {"sample": 100}, {"part": "holdout", "holdout": 0.3, "stretch": 500}):
        placed, cut = (source.load() for source in kinds(genome, **options))
        assert isinstance(placed.batch, Places)
        assert not isinstance(cut.batch, Places)
        assert rows_of(placed.batch) == rows_of(cut.batch)
        assert np.array_equal(placed.y, cut.y)


@pytest.mark.parametrize("solver", ["dcd", "ocas", "newton", "stream", "block_minimization"])
def test_a_fit_on_places_has_the_bits_of_one_on_cut_windows(genome, solver, monkeypatch):
    monkeypatch.setattr(kmer_stretches, "FEWEST", 10**9)  # sums are then rounded alike
    loss = "squared_hinge" if solver == "newton" else "hinge"
    fits = []
    for source in kinds(genome):
        phi = "WeightedDegree(6).hashed(5).normalized() + Spectrum(3).normalized()"
        memory = 1 << 20 if solver in ("stream", "block_minimization") else None
        svm = LinearSVM(phi, solver=solver, loss=loss, tol=0.05, memory=memory, n_jobs=2, random_state=0)
        fits.append(svm.fit(source, keep_cache=False))
    assert np.array_equal(fits[0].model_.w, fits[1].model_.w)
    assert fits[0].model_.intercept == fits[1].model_.intercept
    assert fits[0].classes_.dtype == np.int64


def test_a_fit_that_shares_what_windows_have_in_common_is_as_good(genome):
    phi = "WeightedDegree(6).hashed(5).normalized() + Spectrum(3).normalized()"
    fits = [LinearSVM(phi, solver="dcd", tol=1e-4).fit(source) for source in kinds(genome)]
    assert all(fit.result_.gap <= 1e-4 for fit in fits)
    assert fits[0].result_.primal == pytest.approx(fits[1].result_.primal, rel=2e-4)


def test_support_vectors_that_were_places_are_saved_with_their_letters(genome, tmp_path):
    placed, cut = kinds(genome, sample=80)
    fits = [KernelSVM("FeatureRBF(Spectrum(3), gamma=0.1)", C=1.0).fit(source) for source in (placed, cut)]
    fits[0].model_.save(tmp_path / "m.dotadd")
    rows = cut.load().batch
    assert np.array_equal(load(tmp_path / "m.dotadd").decision_function(rows), fits[1].decision_function(rows))


def test_places_are_written_to_files_as_windows(genome, tmp_path):
    paths = [tmp_path / f"{k}.arrow" for k in range(2)]
    for path, source in zip(paths, kinds(genome), strict=True):
        convert(source, path)
    first, second = (open_source(path).load() for path in paths)
    assert rows_of(first.batch) == rows_of(second.batch)
    assert np.array_equal(first.y, second.y)


def test_memory_of_windows_in_memory_is_that_of_the_genome_and_a_few_bytes_a_window(tmp_path):
    rng = random.Random(5)
    letters = "".join(rng.choices("ACGT", k=400_000))
    (tmp_path / "g.fa").write_text(f">a\n{letters}\n")
    source = Windows(tmp_path / "g.fa", signal="donor", length=200)
    source.load()  # kernels are compiled
    source = Windows(tmp_path / "g.fa", signal="donor", length=200)
    tracemalloc.start()
    batch = source.load().batch
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(batch) > 45_000
    assert held < 2.5 * len(letters) + 24 * len(batch) < len(batch) * 200 / 3


def test_a_sample_that_is_smaller_than_the_genome_has_letters_of_its_own(genome):
    few, many = (Windows(*genome, signal="donor", length=20, sample=size).load().batch for size in (50, 1300))
    assert not isinstance(few, Places)
    assert isinstance(many, Places)
