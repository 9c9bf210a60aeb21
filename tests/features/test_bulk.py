"""DOT, ADD and lengths of many examples at once are those of Blocks, whatever the strings, tiles and threads."""

import numpy as np
import pytest
from problems import squared_distances

from dotadd.core.block import Block
from dotadd.data.batches import Strings
from dotadd.data.transforms import parse
from dotadd.data.virtual import Changes, Originals, VirtualBatch
from dotadd.features import NGrams, Shape, Spectrum, WeightedDegree, WeightedSpectrum, kmer_layout, kmer_tables
from dotadd.features.on_demand import OnDemand
from dotadd.problem.examples import InMemory
from dotadd.solvers import certify

DNA = b"ACGT"


def strings(letters: bytes = DNA, n: int = 300, longest: int = 24, foreign: bytes = b"") -> Strings:
    """Strings of all lengths, the empty one among them, with some foreign letters if wanted."""
    rng = np.random.default_rng(0)
    known = np.frombuffer(letters + foreign, np.uint8)
    return Strings.from_list([known[rng.integers(0, len(known), k % (longest + 1))].tobytes() for k in range(n)])


def same_length(n: int = 300, width: int = 21) -> Strings:
    letters = np.random.default_rng(1).integers(0, 4, n * width)
    return Strings(np.frombuffer(DNA, np.uint8)[letters], width=width)


MAPS = {
    "counted": WeightedDegree(4),
    "hashed, counted at first": WeightedDegree(11).hashed(5),
    "all hashed": WeightedDegree(5, alphabet="protein").hashed(3),
    "orders left out": WeightedDegree(9, weights=[0, 1, 0, 2, 0, 0, 3, 0, 1]).hashed(4),
    "span": WeightedDegree(6, span=(3, -2)).hashed(4),
    "spectrum": Spectrum(3),
    "spectrum of protein": Spectrum(2, alphabet="protein"),
    "letters": Spectrum(1),
    "one spectrum of several": WeightedSpectrum(3, weights=[0, 0, 2]),
    "spectra": WeightedSpectrum(5),
    "spectra of protein": WeightedSpectrum(2, alphabet="protein"),
    "spectra, some": WeightedSpectrum(4, weights=[0, 1, 0, 1], span=(-12, None)),
}
BATCHES = {
    "all lengths": strings(),
    "one length": same_length(),
    "foreign letters": strings(foreign=b"N"),
    "few": strings(n=3, longest=9),
    "up to two words": strings(longest=127, foreign=b"N"),
    "longer": strings(longest=140),
}
PROTEIN = strings(b"ACDEFGHIKLMNPQRSTVWY", foreign=b"X")


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("form", ["plain", "normalized", "stacked"])
def test_many_at_once_are_as_one_by_one(name, batch, form):
    batch, phi = BATCHES[batch], MAPS[name]
    if phi.alphabet.name == "protein":
        batch = PROTEIN
    if form == "normalized":
        phi = phi.normalized()
    elif form == "stacked":
        phi = 0.5 * phi.normalized() + Spectrum(2, alphabet=phi.alphabet.name).hashed(3) + 2.0 * phi
    phi = phi.resolve(Shape.of(batch))
    assert phi.bulk
    rng = np.random.default_rng(2)
    w, coefficients = rng.normal(size=phi.dim), rng.normal(size=len(batch))
    coefficients[::3] = 0.0
    rows = np.arange(len(batch))
    bounds = np.broadcast_to(phi.bound(batch), len(batch))
    block = Block.scratch(bounds, phi.dim, dtype=np.float64)
    phi.fill(batch, rows, block)
    added = np.zeros(phi.dim)
    block.add(coefficients, added)
    for threads in (1, 2):
        examples = InMemory(phi, batch, dtype=np.float64, threads=threads)
        np.testing.assert_allclose(examples.dot([w])[0], block.dot(w), atol=1e-6)
        np.testing.assert_allclose(examples.dot([w], rows[::-2])[0], block.dot(w)[::-2], atol=1e-6)
        np.testing.assert_allclose(examples.squared_norms(), block.squared_norms(), atol=1e-6)
        sums = np.zeros(phi.dim)
        examples.add([coefficients], [sums])
        np.testing.assert_allclose(sums, added, atol=1e-6)


@pytest.mark.parametrize("n", [5000, 4097])
def test_tables_that_are_asked_for_ahead_are_looked_up_as_any(n):
    bits, degree = 13, 16
    batch = same_length(n, 20)
    phi = WeightedDegree(degree).hashed(bits).resolve(Shape.of(batch))
    layout = phi.layout()
    together = layout.group << bits
    assert kmer_tables.FAR <= together <= n * kmer_layout.LINE // 2, "large tables, and strings for most of their lines"
    rng = np.random.default_rng(0)
    w, rows = rng.normal(size=phi.dim).astype(np.float32), rng.permutation(n)
    found = np.zeros(n)
    phi.dot(batch, rows, w, found)
    few = rows[-40:]  # beside those of the last strip, whose share of lines is not that of the others
    block = Block.scratch(np.full(len(few), int(np.max(phi.bound(batch)))), phi.dim)
    phi.fill(batch, few, block)
    expected = [
        w[block.indices[start:end]] @ block.values[start:end] for start, end in zip(block.start, block.end, strict=True)
    ]
    np.testing.assert_allclose(found[-40:], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("nbytes", [1 << 20, 8 * 3000])
def test_distances_are_those_of_the_sum_however_w_is_cut(nbytes, monkeypatch):
    monkeypatch.setattr(certify, "SUM_BYTES_IN_MEMORY", nbytes)
    batch = same_length()
    rng = np.random.default_rng(3)
    coefficients = [rng.normal(size=len(batch)) for _ in range(2)]
    for phi in (WeightedDegree(7).hashed(5).normalized() + Spectrum(4), NGrams(3, bits=10)):
        phi = phi.resolve(Shape.of(batch))
        ws = [rng.normal(size=phi.dim).astype(np.float32) for _ in range(2)]
        for threads in (1, 2):
            examples = InMemory(phi, batch, threads=threads)
            sums = [np.zeros(phi.dim) for _ in ws]
            examples.add(coefficients, sums)
            wanted = [((w - s) ** 2).sum() for w, s in zip(ws, sums, strict=True)]
            np.testing.assert_allclose(squared_distances(examples, coefficients, ws), wanted, rtol=1e-6)


def test_results_do_not_depend_on_the_number_of_threads():
    batch = same_length(n=2000)
    phi = (WeightedDegree(8).hashed(6).normalized() + WeightedSpectrum(4).normalized()).resolve(Shape.of(batch))
    w = np.random.default_rng(4).normal(size=phi.dim).astype(np.float32)
    coefficients = np.random.default_rng(5).normal(size=len(batch))
    one, three = (InMemory(phi, batch, threads=threads) for threads in (1, 3))
    assert (one.dot([w])[0] == three.dot([w])[0]).all()
    a, b = np.zeros(phi.dim), np.zeros(phi.dim)
    one.add([coefficients], [a])
    three.add([coefficients], [b])
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_blocks_filled_ahead_are_those_filled_in_turn():
    rows = np.random.default_rng(6).permutation(300)
    for batch in (same_length(), strings()):
        phi = (WeightedDegree(6).hashed(5) + Spectrum(2).normalized()).resolve(Shape.of(batch))
        seen = {False: [], True: []}
        for ahead in seen:
            for block, at, some in InMemory(phi, batch, threads=2).blocks(rows, ahead=ahead):
                seen[ahead] += [
                    (row, block.indices[block.start[r] : block.end[r]].tolist())
                    for r, row in zip(at, some, strict=True)
                ]
        assert seen[True] == seen[False]


def test_an_error_while_filling_ahead_arrives():
    class Broken(WeightedDegree):
        def fill(self, batch, rows, block):
            raise ValueError("no")

    batch = same_length()
    with pytest.raises(ValueError, match="no"):
        list(InMemory(Broken(3).resolve(Shape.of(batch)), batch, threads=2).blocks(ahead=True))


@pytest.mark.parametrize(
    "phi",
    [
        WeightedDegree(4),
        WeightedDegree(9).hashed(5).normalized(),
        0.5 * WeightedDegree(4).normalized() + Spectrum(2),
        OnDemand(2.0 * WeightedDegree(4)),
    ],
    ids=repr,
)
def test_strings_are_transposed_and_made_once_for_all_classes(phi, monkeypatch):
    batch = same_length()
    if isinstance(phi, OnDemand):
        batch = VirtualBatch.all_of(Originals(batch, Changes(parse("reverse_complement()"))))
    phi, rng = phi.resolve(Shape.of(batch)), np.random.default_rng(3)
    ws = [rng.normal(size=phi.dim) for _ in range(5)]
    examples, calls = InMemory(phi, batch), []
    transpose, made = kmer_tables.transposed, VirtualBatch.made
    monkeypatch.setattr(kmer_tables, "transposed", lambda *some: calls.append("transposed") or transpose(*some))
    monkeypatch.setattr(VirtualBatch, "made", lambda *some: calls.append("made") or made(*some))
    one_by_one = [examples.dot([w])[0] for w in ws]
    each, found = calls[: len(calls) // 5], examples.dot(ws)
    assert calls[5 * len(each) :] == each
    assert "transposed" in each
    np.testing.assert_array_equal(found, one_by_one)
    for one in (phi, phi.prepared(batch)):
        outs = [np.zeros(len(batch)) for _ in ws]
        one.dots(batch, np.arange(len(batch)), ws, outs)
        np.testing.assert_allclose(outs, one_by_one, rtol=1e-6, atol=1e-9)
