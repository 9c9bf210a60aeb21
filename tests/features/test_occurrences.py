"""Where features come from: what stands elsewhere in the row can be anything, and the feature is still there."""

import numpy as np
import pytest

from dotadd import (
    BagOfWords,
    Category,
    Column,
    Date,
    GappySpectrum,
    Gkm,
    MismatchSpectrum,
    NGrams,
    Number,
    Spectrum,
    WeightedDegree,
    WeightedDegreeShift,
    WeightedSpectrum,
    WordNGrams,
)
from dotadd.data.batches import Strings
from dotadd.features.base import Shape
from dotadd.features.occurrences import non_zeros

DNA = [
    Spectrum(3),
    Spectrum(4, strands="both"),
    Spectrum(3, span=(2, -2)),
    Spectrum(5).hashed(6),
    WeightedSpectrum(3),
    WeightedSpectrum(3, weights=(0, 1, 1), strands="both"),
    GappySpectrum(3, 2, decay=0.5),
    MismatchSpectrum(3, 1),
    MismatchSpectrum(3, 1, strands="both"),
    WeightedDegree(4, length=700),
    WeightedDegree(4, length=700, span=(1, None)).hashed(5),
    WeightedDegreeShift(3, 2, length=700),
    Gkm(4, 3),
    Gkm(4, 3, middle=(5, 3.0)),
    Spectrum(3).normalized().hashed(5),
    Spectrum(2) + 0.5 * WeightedSpectrum(2).normalized(),
]
TEXT = [
    NGrams(3),
    NGrams((1, 4), unit="characters", accents="strip"),
    NGrams((2, 3), within="words"),
    NGrams((3, 5), within="words", unit="characters"),
    NGrams(2, unicode=False),
    WordNGrams((1, 2)),
    WordNGrams((1, 2), binary=True),
    WordNGrams(2, stop="english", shortest_word=3),
    WordNGrams(1, tokens="urls"),
    WordNGrams((1, 2), tokens="identifiers"),
    BagOfWords(accents="strip"),
    BagOfWords() + NGrams(4),
]
TEXTS = [
    "Free the money, free  it NOW! naïve ﬁsh Ünïcode straße İstanbul",
    "parseHTTPHeader_2 HTTPServer a%20b%2Fc x",
    "日本語 text \udcff bad",
    "",
    "a",
]


def long_dna():
    random = np.random.default_rng(0)
    return ["".join(random.choice(list("ACGT"), 620)), "ACGTNNACGTTGCANACGTAC", "AC", "NNN"]


def masked(text, first, stop, other):
    return other * first + text[first:stop] + other * (len(text) - stop)


def check(phi, texts, other, sample=60):
    batch = Strings.from_list([text.encode("utf-8", "surrogateescape") for text in texts])
    phi = phi.resolve(Shape.of(batch))
    random, seen = np.random.default_rng(0), 0
    for row, text in enumerate(texts):
        found = phi.occurrences(batch, row)
        slots, _ = non_zeros(phi, batch, row)
        np.testing.assert_array_equal(np.unique(found.slots), np.unique(slots), err_msg=repr(text))
        here = batch[row]
        assert (found.first >= 0).all()
        assert (found.stop <= len(here)).all()
        for k in random.permutation(len(found.slots))[:sample].tolist():
            changed = masked(here, int(found.first[k]), int(found.stop[k]), other)
            again, _ = non_zeros(phi, Strings.from_list([changed]), 0)
            assert found.slots[k] in again, (phi, here, changed)
            seen += 1
    assert seen > 10


@pytest.mark.parametrize("phi", DNA, ids=repr)
def test_a_feature_of_letters_needs_no_letters_but_those_it_covers(phi):
    check(phi, long_dna(), b"N")


@pytest.mark.parametrize("phi", [Spectrum(3), WeightedSpectrum(3), WeightedDegree(4, length=700), Gkm(4, 4)], ids=repr)
def test_a_kmer_covers_no_letter_that_it_does_not_need(phi):
    text = long_dna()[0].encode()
    found = phi.occurrences(Strings.from_list([text]), 0)
    for k in range(0, len(found.slots), 37):
        for more, less in ((1, 0), (0, 1)):
            changed = masked(text, int(found.first[k]) + more, int(found.stop[k]) - less, b"N")
            assert found.slots[k] not in non_zeros(phi, Strings.from_list([changed]), 0)[0]


@pytest.mark.parametrize("phi", TEXT, ids=repr)
def test_a_feature_of_text_needs_no_text_but_what_it_covers(phi):
    check(phi, TEXTS, b" ")


@pytest.mark.parametrize("phi", DNA, ids=repr)
def test_occurrences_add_up_to_the_row(phi):
    batch = Strings.from_list(long_dna())
    phi = phi.resolve(Shape.of(batch))
    for row in range(len(batch)):
        found, (slots, values) = phi.occurrences(batch, row), non_zeros(phi, batch, row)
        for slot in np.unique(slots):
            assert found.values[found.slots == slot].sum() == pytest.approx(values[slots == slot].sum(), rel=1e-5)


def test_cells_know_their_columns():
    pd = pytest.importorskip("pandas")
    from dotadd import open as open_source

    frame = pd.DataFrame(
        {"job": ["nurse", "cook"], "age": [30.0, np.nan], "note": ["so it is", "no"], "day": ["2024-03-31", ""]}
    )
    phi = (
        Number("age") + Category("job") + Category("job") * Category("day") + Date("day") + Column("note", BagOfWords())
    )
    from dotadd.estimators.protocol import columns_read

    (chunk,) = open_source(frame, like=columns_read(phi)).chunks()
    phi = phi.resolve(Shape.of(chunk.batch))
    found = phi.occurrences(chunk.batch, 0)
    assert found.column.tolist() == ["age", "job", "job x day", "day", "day", "note", "note", "note"]
    assert [(int(a), int(b)) for a, b in zip(found.first[5:], found.stop[5:], strict=True)] == [(0, 2), (3, 5), (6, 8)]
    assert phi.occurrences(chunk.batch, 1).column.tolist() == ["age", "job", "job x day", "note"]
