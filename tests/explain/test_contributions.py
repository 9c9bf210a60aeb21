"""What features, letters and columns add sums to the score."""

import itertools

import numpy as np
import pytest
from naive_features import distance, kmers, reverse_complement

import dotadd
from dotadd import (
    BagOfWords,
    Gkm,
    KernelSVM,
    LinearSVM,
    MismatchSpectrum,
    NGrams,
    Spectrum,
    WeightedDegree,
    WeightedDegreeShift,
    WeightedSpectrum,
    WordNGrams,
)
from dotadd.data.batches import Strings
from dotadd.errors import DotaddError
from dotadd.explain.mutations import changes
from dotadd.features.alphabet import Alphabet

RNG = np.random.default_rng(5)
MOTIF = "TGACTCA"


def sequences(count, length=40):
    """The second class has a motif at a known place."""
    made, places = [], []
    for k in range(count):
        letters = "".join(RNG.choice(list("ACGT"), length))
        at = int(RNG.integers(5, length - 5 - len(MOTIF)))
        made.append(letters[:at] + MOTIF + letters[at + len(MOTIF) :] if k % 2 else letters)
        places.append(at)
    return made, np.arange(count) % 2, places


DNA, LABELS, PLACES = sequences(300)
WORDS = [
    "the",
    "win",
    "money",
    "now",
    "free",
    "cheap",
    "report",
    "minutes",
    "meeting",
    "budget",
    "team",
    "dear",
    "friend",
]
MAILS = [" ".join(RNG.choice(WORDS, 25)) + (" Free MONEY, now!" if k % 2 else "") for k in range(60)]
MAIL_LABELS = np.arange(60) % 2

DNA_MAPS = [
    Spectrum(4),
    Spectrum(4, strands="both").normalized(),
    Spectrum(5).hashed(8),
    WeightedSpectrum(3),
    WeightedDegree(4),
    WeightedDegree(4).hashed(5).normalized(),
    WeightedDegreeShift(3, 2),
    MismatchSpectrum(4, 1),
    Spectrum(4).indexed(),
    Spectrum(3).log(),
    Spectrum(3).tfidf(),
    Spectrum(3).scaled("max"),
    0.5 * Spectrum(2).normalized() + WeightedDegree(2),
    (Spectrum(2) + WeightedSpectrum(3).normalized()).hashed(6),
]
TEXT_MAPS = [
    NGrams((3, 5)),
    NGrams(3, within="words"),
    WordNGrams((1, 2)),
    WordNGrams((1, 2), binary=True),
    BagOfWords().tfidf(),
    WordNGrams((1, 2)).frequent(min_df=2).normalized(),
    BagOfWords() + NGrams(4).log().normalized(),
]


def sums(svm, X):
    """What features add, and what letters and features elsewhere do, beside scores without the intercept."""
    scores, found = svm.decision_function(X), svm.explain(X, method="features")
    features = [row.contributions.sum() for row in found]
    letters = [row.letters.sum() + row.elsewhere for row in found]
    return scores - svm.intercept_[0], features, letters, found


@pytest.mark.parametrize("phi", DNA_MAPS, ids=repr)
def test_letters_and_intercept_sum_to_the_score(phi):
    svm = LinearSVM(phi, C=1.0).fit(DNA[:80], LABELS[:80])
    wanted, features, letters, found = sums(svm, DNA[80:100])
    size = np.abs(wanted).max()
    np.testing.assert_allclose(features, wanted, rtol=1e-5, atol=1e-5 * size)
    np.testing.assert_allclose(letters, wanted, rtol=1e-5, atol=1e-5 * size)
    assert all(row.elsewhere == 0.0 for row in found)


@pytest.mark.parametrize("phi", TEXT_MAPS, ids=repr)
def test_letters_of_text_and_intercept_sum_to_the_score(phi):
    svm = LinearSVM(phi, C=1.0).fit(MAILS[:40], MAIL_LABELS[:40])
    wanted, features, letters, found = sums(svm, MAILS[40:])
    size = np.abs(wanted).max()
    np.testing.assert_allclose(features, wanted, rtol=1e-5, atol=1e-5 * size)
    np.testing.assert_allclose(letters, wanted, rtol=1e-5, atol=1e-5 * size)
    assert all(row.elsewhere == 0.0 for row in found)


@pytest.mark.parametrize("phi", [Spectrum(5).normalized(), Gkm(6, 4).normalized()], ids=repr)
@pytest.mark.parametrize("method", ["auto", "ism"])
def test_a_planted_motif_matters_most(phi, method):
    svm = LinearSVM(phi, C=1.0).fit(DNA[:260], LABELS[:260])
    hits = []
    for row, at in zip(svm.explain(DNA[261:300:2], method=method), PLACES[261:300:2], strict=True):
        best = np.argsort(-row.letters)[: len(MOTIF)]
        hits.append(np.mean((best >= at) & (best < at + len(MOTIF))))
    assert np.mean(hits) > 0.8


def test_in_silico_mutagenesis_is_the_score_of_each_changed_sequence():
    svm = LinearSVM(Spectrum(3).normalized(), C=1.0).fit(DNA[:80], LABELS[:80])
    text = "ACGTNACCAGTGACTCAGGACG".replace("N", "g")
    found = svm.explain([text], method="ism")[0]
    score = svm.decision_function([text])[0]
    assert found.score == pytest.approx(score)
    for position, (number, letter) in itertools.product(range(len(text)), enumerate("ACGT")):
        changed = text[:position] + letter + text[position + 1 :]
        wanted = svm.decision_function([changed])[0] - score
        assert found.changes[number, position] == pytest.approx(wanted, abs=1e-6)
    at = ["ACGT".index(letter) for letter in text.upper()]
    np.testing.assert_allclose(found.letters, -found.changes.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.letters, found.hypothetical[at, np.arange(len(text))])


def test_pieces_of_mutagenesis_give_what_all_at_once_does():
    svm = LinearSVM(Spectrum(3), C=1.0).fit(DNA[:80], LABELS[:80])
    batch = Strings.from_list(["ACGTTGCA", "A", "GGGATTC"])
    whole = changes(batch, Alphabet("dna"), svm.decision_function)
    for mine, theirs in zip(whole, changes(batch, Alphabet("dna"), svm.decision_function, at_once=20), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)


def naive_matching(text, order, weights, pair, both):
    """By the definition, with a loop over all pairs of l-mers."""
    letters = np.zeros(len(text))
    for (at, v), (u, weight) in itertools.product(kmers(text, order), weights.items()):
        if "N" in v:
            continue
        for other in (u,) if not both else (u, reverse_complement(u)):
            m = distance(other, v)
            if m < len(pair) and pair[m]:
                agree = [p for p in range(order) if other[p] == v[p]] or range(order)
                for p in agree:
                    letters[at + p] += weight * pair[m] / len(agree)
    return letters


@pytest.mark.parametrize("strands", ["one", "both"])
@pytest.mark.parametrize("sizes", [(3, 2, "truncated"), (4, 2, "full"), (3, 2, "count"), (4, 3, "truncated")], ids=str)
def test_gapped_kmers_are_split_as_gkmexplain_does(sizes, strands):
    size, read, kind = sizes
    phi = Gkm(size, read, filter=kind, strands=strands)
    svm = LinearSVM(phi.normalized(), C=1.0).fit(DNA[:60], LABELS[:60])
    texts = ["ACGTTGCATTGACTCAAG", "GGGATCNACGTT", "AC"]
    found = svm.explain(texts)
    assert found.method == "matching"
    names = svm.model_.phi.names(np.arange(phi.dim), None)
    for text, row, score in zip(texts, found, svm.decision_function(texts), strict=True):
        length = np.sqrt(phi.squared_norms(Strings.from_list([text]), np.array([0]))[0]) or 1.0
        weights: dict[str, float] = {}
        for name, weight in zip(names, svm.coef_[0].tolist(), strict=True):
            if strands == "both" and name == reverse_complement(name):
                weight *= np.sqrt(0.5)  # it comes twice below, and counts sqrt(2) times
            if strands == "one" or name <= reverse_complement(name) or phi.layout == "half":
                weights[name] = weights.get(name, 0.0) + weight
        wanted = naive_matching(text, size, weights, phi.weights, strands == "both") / length
        np.testing.assert_allclose(row.letters, wanted, atol=1e-5 * max(1.0, abs(wanted).max()))
        assert row.letters.sum() + row.intercept == pytest.approx(score, abs=1e-5)
        assert row.contributions.sum() + row.intercept == pytest.approx(score, abs=1e-5)


def test_hypothetical_letters_are_those_of_the_changed_sequence():
    """What a letter would add, but for the length of the row, is what it adds where it stands."""
    svm = LinearSVM(Gkm(4, 3), C=0.01).fit(DNA[:60], LABELS[:60])
    text = "ACGTTGCATTGACTCAAG"
    row = svm.explain([text])[0]
    for position, letter in ((0, "T"), (9, "C"), (17, "A")):
        changed = svm.explain([text[:position] + letter + text[position + 1 :]])[0]
        assert row.hypothetical["ACGT".index(letter), position] == pytest.approx(changed.letters[position], abs=1e-6)


def test_two_classes_are_two_sides_of_one_score():
    svm = LinearSVM(Spectrum(3), C=1.0).fit(DNA[:60], LABELS[:60])
    second, first = svm.explain(DNA[60:62])[0], svm.explain(DNA[60:62], target=0)[0]
    assert (second.label, first.label) == (1, 0)
    assert first.score == -second.score == -svm.decision_function(DNA[60:62])[0]
    np.testing.assert_allclose(first.letters, -second.letters)
    assert first.letters.sum() + first.intercept == pytest.approx(first.score, abs=1e-5)


def test_of_several_classes_the_predicted_one_is_explained():
    labels = np.array(["a", "b", "c"])[np.arange(90) % 3]
    texts = [" ".join(RNG.choice(WORDS, 6)) + f" {label}{label}" for label in labels]
    svm = LinearSVM(BagOfWords(), C=1.0).fit(texts, labels)
    scores, predicted = svm.decision_function(texts[:12]), svm.predict(texts[:12])
    for row, score, label in zip(svm.explain(texts[:12]), scores, predicted, strict=True):
        assert row.label == label
        assert row.score == pytest.approx(score.max())
        assert row.contributions.sum() + row.intercept == pytest.approx(row.score, abs=1e-5)
        assert row.features[0].name == f"{label}{label}"
    assert svm.explain(texts[:1], target="b")[0].score == pytest.approx(scores[0][1])
    with pytest.raises(DotaddError, match="no class 'z'"):
        svm.explain(texts, target="z")


def test_words_stand_where_they_are_said_to():
    svm = LinearSVM(WordNGrams((1, 2)), C=1.0).fit(MAILS, MAIL_LABELS)
    row = svm.explain(["Dear friend: FREE money, now; free."])[0]
    found = {feature.name: [row.texts[""].text[a:b].decode() for a, b in feature.spans] for feature in row.features}
    assert found["free"] == ["FREE", "free"]
    assert found["free money"] == ["FREE money"]


def test_tables_are_explained_by_column():
    pd = pytest.importorskip("pandas")
    count = 80
    frame = pd.DataFrame(
        {
            "job": RNG.choice(["nurse", "cook", "clerk"], count),
            "age": RNG.integers(20, 60, count).astype(float),
            "note": [" ".join(RNG.choice(WORDS, 4)) for _ in range(count)],
        }
    )
    y = ((frame["job"] == "nurse") | (frame["age"] > 50)).astype(int).to_numpy()
    phi = dotadd.parse('Number("age").scaled("std") + Category("job").indexed() + Column("note", BagOfWords(bits=8))')
    svm = LinearSVM(phi, C=10.0).fit(frame, y)
    scores = svm.decision_function(frame)
    for row, score in zip(svm.explain(frame), scores, strict=True):
        assert set(row.columns) == {"age", "job", "note"}
        total = sum(row.columns.values()) + row.elsewhere + row.intercept
        assert total == pytest.approx(score, rel=1e-4, abs=1e-4)
        assert row.texts["note"].adds.sum() == pytest.approx(row.columns["note"], abs=1e-6)
    nurse = svm.explain(frame[frame["job"] == "nurse"].head(1))[0]
    assert any(feature.name == "job=nurse" and feature.contribution > 0 for feature in nurse.features)


def test_vectors_are_explained_by_the_names_of_columns():
    X = RNG.normal(size=(60, 5))
    svm = LinearSVM(C=1.0).fit(X, (X[:, 2] > 0).astype(int))
    row = svm.explain(X[:1])[0]
    assert row.features[0].name == "x2"
    assert row.features[0].contribution == pytest.approx(svm.coef_[0][2] * X[0, 2], rel=1e-5)
    assert not row.texts


def test_a_loaded_model_explains_as_the_one_that_was_saved(tmp_path):
    svm = LinearSVM(Spectrum(3), C=1.0).fit(DNA[:60], LABELS[:60])
    svm.save(tmp_path / "m.dotadd")
    mine, theirs = svm.explain(DNA[60:62]), dotadd.load(tmp_path / "m.dotadd").explain(DNA[60:62])
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a.letters, b.letters)
        assert a.features == b.features


def test_kernel_machines_are_explained_by_mutagenesis():
    svm = KernelSVM("FeatureKernel(Spectrum(3))", C=1.0).fit(DNA[:60], LABELS[:60])
    found = svm.explain(DNA[60:61])
    assert found.method == "ism"
    with pytest.raises(DotaddError, match="kernel machine"):
        svm.explain(DNA[60:61], method="features")


def test_a_method_that_cannot_be_is_refused():
    mails = LinearSVM(BagOfWords(), C=1.0).fit(MAILS, MAIL_LABELS)
    with pytest.raises(DotaddError, match="letters of sequences"):
        mails.explain(MAILS[:1], method="ism")
    with pytest.raises(DotaddError, match="gapped k-mers"):
        mails.explain(MAILS[:1], method="matching")
    with pytest.raises(DotaddError, match="give one of"):
        mails.explain(MAILS[:1], method="shap")


class Vowels(dotadd.FeatureMap):
    """A map of somebody's own, which does not tell where features come from."""

    takes = Spectrum.takes
    dim = 4
    alphabet = Spectrum(1).alphabet

    def bound(self, batch):
        return 4

    def fill(self, batch, rows, block):
        for j, row in enumerate(rows):
            text = batch[int(row)]
            block.append(j, np.arange(4), np.array([text.count(letter) for letter in (b"A", b"C", b"G", b"T")]))


def test_where_nobody_knows_the_place_letters_are_changed():
    svm = LinearSVM(Vowels(), C=1.0).fit(DNA[:60], LABELS[:60])
    assert svm.explain(DNA[:2]).method == "ism"
    row = svm.explain(DNA[:2], method="features")[0]
    assert row.elsewhere == pytest.approx(row.score - row.intercept, abs=1e-5)
