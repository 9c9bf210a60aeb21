"""NGrams, BagOfWords and WordNGrams: counts of what the text holds, under the hash."""

from __future__ import annotations

import naive_features as naive
import numpy as np
import pytest

from dotadd.data.batches import Strings
from dotadd.errors import FeatureError
from dotadd.features import BagOfWords, NGrams, WordNGrams
from dotadd.features.checks import check_feature_map, materialize

TEXTS = ["", "a", "The cat, the CAT and the_hat.", "  Zwölf große Käfer, 12 Käfer!", "cat", "don't--stop42 stop"]


def gram(phi, texts=TEXTS) -> np.ndarray:
    return naive.gram(naive.rows_of(materialize(phi, Strings.from_list(texts))))


def encoded(texts=TEXTS, *, lower: bool = True) -> list[bytes]:
    return [text.encode().lower() if lower else text.encode() for text in texts]  # bytes.lower is ASCII's


@pytest.mark.parametrize("n", [1, 3, (1, 4), (2, 3), [2, 3]])
def test_ngram_inner_products_are_those_of_their_counts(n):
    shortest, longest = (n, n) if isinstance(n, int) else n
    for lower in (True, False):
        wanted = naive.gram([naive.ngrams(text, shortest, longest) for text in encoded(lower=lower)])
        assert np.allclose(gram(NGrams(n, bits=28, lowercase=lower)), wanted)


def test_word_inner_products_are_those_of_their_counts():
    for lower in (True, False):
        wanted = naive.gram([naive.words(text) for text in encoded(lower=lower)])
        assert np.allclose(gram(BagOfWords(bits=28, lowercase=lower)), wanted)


def test_binary_words_count_once():
    wanted = naive.gram([dict.fromkeys(naive.words(text), 1.0) for text in encoded()])
    assert np.allclose(gram(BagOfWords(bits=28, binary=True)), wanted)


@pytest.mark.parametrize("n", [1, 2, 3, (1, 2), (2, 4), [1, 30]])
def test_word_ngram_inner_products_are_those_of_their_counts(n):
    shortest, longest = (n, n) if isinstance(n, int) else n
    texts = [*TEXTS, "stop42 stop", "a b a b a, c a b", "b a", "a b"]
    for lower in (True, False):
        counts = [naive.word_ngrams(text, shortest, longest) for text in encoded(texts, lower=lower)]
        phi = WordNGrams(n, bits=30, lowercase=lower)
        used = np.unique(materialize(phi, Strings.from_list(texts)).indices)
        assert len(used) == len(set().union(*counts))  # no two share a slot
        assert np.allclose(gram(phi, texts), naive.gram(counts))
        phi = WordNGrams(n, bits=30, lowercase=lower, binary=True)
        assert np.allclose(gram(phi, texts), naive.gram([dict.fromkeys(row, 1.0) for row in counts]))


def test_single_words_are_a_bag_of_words():
    for options in ({}, {"bits": 5, "binary": True}, {"lowercase": False}):
        words, bag = (
            materialize(phi, Strings.from_list(TEXTS)) for phi in (WordNGrams(1, **options), BagOfWords(**options))
        )
        assert (words != bag).nnz == 0


def test_order_of_words_counts():
    # cat sat, the cat; cat the, the sat; sat the, the cat
    kernel = gram(WordNGrams(2), ["the cat sat", "cat the sat", "sat the cat", "The, CAT -- sat!"])
    assert kernel.tolist() == [[2, 0, 1, 2], [0, 2, 0, 0], [1, 0, 2, 1], [2, 0, 1, 2]]


def test_words_of_one_text_do_not_join_those_of_the_next():
    matrix = materialize(WordNGrams((2, 3)), Strings.from_list(["a b c", "d", "e f", "", "g"]))
    assert matrix.sum(axis=1).tolist() == [3, 0, 1, 0, 0]


def test_word_pairs_spread_as_evenly_as_chance():
    rng = np.random.default_rng(0)
    n = 2**14
    text = " ".join(f"w{i}" for i in rng.permutation(n))
    used = materialize(WordNGrams(2, bits=14), Strings.from_list([text])).nnz / n
    assert used == pytest.approx(1 - np.exp(-1), abs=0.02)


def test_every_word_is_found_wherever_it_stands():
    texts = ["x", " x", "x ", " x ", "x.x", ".", "x" * 300, "a" + " a" * 300]
    counts = [len(text.replace(".", " ").split()) for text in texts]
    matrix = materialize(BagOfWords(), Strings.from_list(texts))
    assert matrix.sum(axis=1).tolist() == counts


def test_words_spread_as_evenly_as_chance():
    n = 2**14
    text = " ".join(f"w{i}" for i in range(n))
    used = materialize(BagOfWords(bits=14), Strings.from_list([text])).nnz / n
    assert used == pytest.approx(1 - np.exp(-1), abs=0.02)


def test_bits_set_the_size_of_the_space():
    assert NGrams(3).dim == BagOfWords().dim == 2**20
    assert NGrams(3, bits=5).dim == BagOfWords(bits=5).dim == 2**5


@pytest.mark.parametrize(
    "phi",
    [
        NGrams((1, 3), bits=6),
        NGrams(2),
        BagOfWords(),
        BagOfWords(bits=2),
        BagOfWords(bits=2, binary=True),
        WordNGrams((1, 3), bits=4),
        WordNGrams((1, 3), bits=4, binary=True),
        WordNGrams(2, lowercase=False),
    ],
)
def test_text_maps_keep_the_contract(phi):
    check_feature_map(phi, Strings.from_list(TEXTS))
    check_feature_map(phi, Strings(np.frombuffer(b"ab cd, e f ab ab", np.uint8), width=8))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NGrams(0), "n has to be"),
        (lambda: NGrams((3, 2)), "n has to be"),
        (lambda: NGrams((1, 2, 3)), "n has to be"),
        (lambda: NGrams("3"), "n has to be"),
        (lambda: NGrams(3, bits=40), "bits has to be"),
        (lambda: NGrams(3, lowercase=1), "lowercase has to be True or False"),
        (lambda: WordNGrams(0), "n has to be"),
        (lambda: WordNGrams((2, 1)), "n has to be"),
        (lambda: WordNGrams(2, bits=0), "bits has to be"),
        (lambda: BagOfWords(binary="yes"), "binary has to be True or False"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(FeatureError, match=message):
        make()


def test_a_long_text_beside_short_ones_is_paid_for_once():
    """A table of the long text's size, cleared for each of the short ones, would take minutes."""
    words = [f"w{k}" for k in range(200_000)]
    batch = Strings.from_list([*(f"{w} {w} end" for w in words), " ".join(words)])
    counts = materialize(BagOfWords(bits=30), batch)
    assert ((counts > 0) != materialize(BagOfWords(bits=30, binary=True), batch)).nnz == 0
