"""Rational kernels in every solver: on strings and on lattices, trained, saved, and loaded again."""

from __future__ import annotations

import numpy as np
import pytest

import dotadd
import dotadd.errors
from dotadd import KernelSVM, LinearSVM, Rational
from dotadd.automata import Automaton, gappy_ngram, mismatch, ngram
from dotadd.automata.files import write
from dotadd.automata.symbols import HashedSymbols, SymbolTable
from dotadd.data.batches import Strings
from dotadd.data.lattices import Lattices
from dotadd.solvers import dcd


def labelled(rng, n=60):
    """Sentences of two kinds, which differ in a pair of words, and labels."""
    y = np.where(np.arange(n) % 2, 1, -1)
    sentences = []
    for label in y:
        words = rng.integers(1, 6, 8)
        words[3:5] = (6, 7) if label > 0 else (7, 6)
        sentences.append(words)
    return sentences, y


def lattices_of(sentences, rng) -> Lattices:
    """Each word may have been another one."""
    rows = []
    for words in sentences:
        arcs = [(q, q + 1, int(word), 0.8) for q, word in enumerate(words)]
        arcs += [(q, q + 1, int(rng.integers(1, 8)), 0.2) for q in range(len(words))]
        rows.append(Automaton.from_arcs(arcs, [len(words)]))
    return Lattices.from_automata(rows)


def strings_of(sentences) -> list[str]:
    return ["".join(chr(96 + word) for word in words) for words in sentences]


def both_kinds(seed=0):
    rng = np.random.default_rng(seed)
    sentences, y = labelled(rng)
    return {"strings": strings_of(sentences), "lattices": lattices_of(sentences, rng)}, y


@pytest.mark.parametrize("kind", ["strings", "lattices"])
@pytest.mark.parametrize("solver", ["dcd", "sgd", "ocas"])
def test_linear_solvers_agree_and_learn(kind, solver):
    x, y = both_kinds()
    svm = LinearSVM(Rational(ngram(2)).normalized(), solver=solver, tol=1e-2, random_state=0).fit(x[kind], y)
    best = LinearSVM(Rational(ngram(2)).normalized(), solver="dcd", tol=1e-5, random_state=0).fit(x[kind], y)
    assert svm.score(x[kind], y) == 1.0
    assert svm.result_.primal <= 1.05 * best.result_.primal
    new, labels = both_kinds(seed=1)
    assert svm.score(new[kind], labels) > 0.9


@pytest.mark.parametrize("kind", ["strings", "lattices"])
def test_kernel_machines_take_it(kind, tmp_path):
    x, y = both_kinds()
    svm = KernelSVM(Rational(gappy_ngram(2, 0.5)), C=1.0).fit(x[kind], y)
    assert svm.score(x[kind], y) == 1.0
    svm.save(tmp_path / "m")
    np.testing.assert_allclose(dotadd.load(tmp_path / "m").decision_function(x[kind]), svm.decision_function(x[kind]))


def test_a_model_brings_its_transducer_along(tmp_path):
    x, y = both_kinds()
    symbols = SymbolTable(chr(97 + k) for k in range(7))
    write(Automaton.made(*ngram(2).transducer(7).arrays, symbols=symbols), tmp_path / "my.fst")
    by_name = LinearSVM(Rational(str(tmp_path / "my.fst")), tol=1e-4).fit(x["strings"], y)
    scores = by_name.decision_function(x["strings"])
    by_name.save(tmp_path / "m")
    (tmp_path / "my.fst").unlink()
    np.testing.assert_array_equal(dotadd.load(tmp_path / "m").decision_function(x["strings"]), scores)
    built = LinearSVM(Rational(ngram(2)), tol=1e-4).fit(x["strings"], y)
    np.testing.assert_allclose(scores, built.decision_function(x["strings"]), atol=0.05)
    with pytest.raises(dotadd.DataError, match=r"my\.fst"):
        LinearSVM(Rational(str(tmp_path / "my.fst"))).fit(x["strings"], y)


@pytest.mark.parametrize("phi", ["Rational(mismatch(2, 1))", "Rational(ngram(2), bits=None).indexed()"])
@pytest.mark.parametrize("kind", ["strings", "lattices"])
def test_what_was_learned_is_in_the_model_file(phi, kind, tmp_path):
    x, y = both_kinds()
    svm = LinearSVM(phi, tol=0.1).fit(x[kind], y)
    assert svm.score(x[kind], y) == 1.0
    svm.save(tmp_path / "m")
    np.testing.assert_array_equal(
        dotadd.load(tmp_path / "m").decision_function(x[kind]), svm.decision_function(x[kind])
    )


def test_a_transducer_that_names_words_reads_lattices_of_words():
    words = SymbolTable(["play", "stop", "music"])
    T = Automaton.from_arcs(
        [(0, 0, w, 0, 1.0) for w in (1, 2, 3)] + [(0, 1, 1, 1, 1.0), (1, 1, 3, 0, 1.0)], [1], symbols=words
    )
    rows = [Automaton.from_string([1, 3], symbols=words), Automaton.from_string([2, 3], symbols=words)]
    hashed = Lattices.from_automata(rows, HashedSymbols())
    phi = Rational(T, bits=None)
    assert phi.bound(hashed).tolist() == [1, 0]
    assert phi.origins(hashed, np.array([0]), np.array([0]))[0].text.tolist() == [b"play"]


def test_lattices_stream_from_files_that_do_not_fit(tmp_path):
    x, y = both_kinds()
    import pyarrow as pa
    import pyarrow.ipc

    table = pa.table({"x": x["lattices"].to_arrow(), "label": y})
    with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=7)
    read = dotadd.open(tmp_path / "x.arrow", column="x", label="label").load()
    assert isinstance(read.batch, Lattices)
    svm = LinearSVM("Rational(ngram(2))", memory=20_000, random_state=0)
    with pytest.warns(dotadd.errors.StreamingWarning):
        svm.fit(dotadd.open(tmp_path / "x.arrow", column="x", label="label"))
    assert svm.score(x["lattices"], y) == 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_pass_of_dcd_is_the_papers_table_2(dtype, monkeypatch):
    """The third string is one that the numbers of tables 1 and 2 fit, see test_automata_paper."""
    monkeypatch.setattr(dcd, "shuffle", lambda order, rng: None)  # Algorithm 2 takes the examples in their order
    for x in (
        ["ababa", "abbab", "abcba"],
        Lattices.from_automata([Automaton.from_string(s) for s in ([1, 2, 1, 2, 1], [1, 2, 2, 1, 2], [1, 2, 3, 2, 1])]),
    ):
        svm = LinearSVM(
            Rational(ngram(2)), C=100.0, solver="dcd", intercept="none", max_passes=1, tol=1e-9, dtype=dtype
        )
        with pytest.warns(dotadd.NotConvergedWarning):
            svm.fit(x, [1, 1, -1])
        np.testing.assert_allclose(svm.result_.alpha, [1 / 8, 1 / 24, 13 / 32], rtol=1e-6)


def test_strings_of_a_batch_and_of_a_list_are_the_same():
    x, y = both_kinds()
    one = LinearSVM(Rational(mismatch(2, 0)), random_state=0).fit(x["strings"], y)
    other = LinearSVM(Rational(mismatch(2, 0)), random_state=0).fit(Strings.from_list(x["strings"]), y)
    np.testing.assert_array_equal(one.coef_, other.coef_)
