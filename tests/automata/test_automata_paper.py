"""The examples of Allauzen, Cortes and Mohri, "SVM optimization for lattice kernels": figures and tables 1 and 2."""

from itertools import product

import numpy as np
import pytest
from naive_automata import arcs_of

from dotadd.automata import Automaton, add, compose, invert, ngram, project, total

LETTERS = {letter: label for label, letter in enumerate("abc", 1)}


def labels(text):
    return [LETTERS[letter] for letter in text]


def test_figure_1_has_weight_60():
    a, b = labels("ab")
    transducer = Automaton.from_arcs(
        [(0, 1, a, b, 3), (1, 1, a, a, 1), (1, 2, a, a, 2), (1, 3, b, a, 4), (2, 3, b, a, 3)], {3: 2}
    )
    assert transducer.weight(labels("aab"), labels("baa")) == 3 * 1 * 4 * 2 + 3 * 2 * 3 * 2
    assert project(transducer, "output").weight(labels("baa")) == 60


def test_figure_2_is_the_bigram_counter():
    a, b = labels("ab")
    expected = [(state, state, x, 0, 1.0) for state in (0, 2) for x in (a, b)]
    expected += [(state, state + 1, x, x, 1.0) for state in (0, 1) for x in (a, b)]
    counter = ngram(2).transducer(2)
    assert sorted(arcs_of(counter)) == sorted(expected)
    assert counter.start == 0
    assert counter.finals.tolist() == [0.0, 0.0, 1.0]


def first_iteration(texts, y, n_symbols, C=np.inf):
    """Algorithm 2, one pass: Q_ii, D(Phi'_i o W') and alpha_i of each example. W' is the naive sum of section 5.1."""
    T = ngram(2).transducer(n_symbols)
    Phi = [project(compose(s * Automaton.from_string(labels(x)), T), "output") for x, s in zip(texts, y, strict=True)]
    alpha = np.zeros(len(texts))
    Q, D = [], []
    for i in range(len(texts)):
        W = add(Phi, alpha)
        Q.append(total(Phi[i] @ Phi[i]))
        D.append(total(Phi[i] @ W))
        alpha[i] = min(max(alpha[i] - (D[i] - 1) / Q[i], 0.0), C)
    return Q, D, alpha


def bigrams(text):
    return {
        z: sum(text[k : k + 2] == z for k in range(len(text))) for z in {text[k : k + 2] for k in range(len(text) - 1)}
    }


# Tables 1 and 2 cannot all be meant as they are printed. The text has abbab for both the second and the third
# example; abbab has the bigrams ab (twice), bb and ba, so that Q is 6, which fits the second column. The third column,
# Q = 4 and D = -5/8, fits no string over {a, b} at all: four different bigrams give D = -2/3, and a single bigram that
# occurs twice -2/3, -7/12 or at most -1/12. It does fit strings with a third letter that have ab, ba and two more
# bigrams, such as abcba. So both are computed: the numbers as printed, with abcba; and the strings as printed.


def test_tables_1_and_2_with_a_third_string_that_fits_the_numbers():
    Q, D, alpha = first_iteration(["ababa", "abbab", "abcba"], [+1, +1, -1], 3)
    assert pytest.approx([8, 6, 4]) == Q
    assert pytest.approx([0, 3 / 4, -5 / 8]) == D
    np.testing.assert_allclose(alpha, [1 / 8, 1 / 24, 13 / 32])


def test_tables_1_and_2_with_the_strings_as_printed():
    Q, D, alpha = first_iteration(["ababa", "abbab", "abbab"], [+1, +1, -1], 2)
    assert pytest.approx([8, 6, 6]) == Q
    assert pytest.approx([0, 3 / 4, -1]) == D
    np.testing.assert_allclose(alpha, [1 / 8, 1 / 24, 1 / 3])


def test_no_string_over_two_letters_has_the_third_column_of_table_1():
    w = {"ab": 2 / 8 + 2 / 24, "ba": 2 / 8 + 1 / 24, "bb": 1 / 24}
    for length in range(8):  # a string of more than 5 letters has more than 4 bigrams, and Q > 4
        for letters in product("ab", repeat=length):
            counts = bigrams("".join(letters))
            if sum(count**2 for count in counts.values()) == 4:
                assert sum(count * w.get(z, 0.0) for z, count in counts.items()) != pytest.approx(5 / 8)


def test_the_kernel_is_the_sum_of_all_paths_through_the_transducer_and_its_inverse():
    T = ngram(2).transducer(2)
    x, y = (Automaton.from_string(labels(text)) for text in ("ababa", "abbab"))
    assert total(x @ (T @ invert(T)) @ y) == total(x @ T @ invert(T) @ y) == 2 * 2 + 2 * 1


def test_kernel_between_weighted_sets_of_strings_is_the_weighted_sum():
    T = ngram(2).transducer(2)
    U = T @ invert(T)
    x = 0.25 * Automaton.from_string(labels("ababa")) + 0.75 * Automaton.from_string(labels("bb"))
    y = Automaton.from_string(labels("abbab"))
    assert total(x @ U @ y) == pytest.approx(0.25 * 6 + 0.75 * 1)
