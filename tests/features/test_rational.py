"""Rational: the features of rational kernels are those of the definition, D(X o T o T^-1 o Y)."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, product
from threading import Event, Thread

import numpy as np
import pytest

import dotadd
from dotadd.automata import Automaton, compose, gappy_ngram, invert, mismatch, ngram, total
from dotadd.automata.files import write
from dotadd.automata.symbols import SymbolTable
from dotadd.core.block import Block
from dotadd.data.batches import Strings
from dotadd.data.lattices import Lattices
from dotadd.errors import FeatureError
from dotadd.features import rational
from dotadd.features.base import Shape
from dotadd.features.checks import check_feature_map, materialize
from dotadd.features.rational import Rational
from dotadd.features.string_counts import id_of, letters_of
from dotadd.features.transducer import Transducer
from dotadd.problem.examples import InMemory

BUILDERS = [
    ngram(1),
    ngram(3),
    gappy_ngram(2, 0.5),
    gappy_ngram(3, 1.0),
    gappy_ngram(3, 0.5, gaps=2),
    gappy_ngram(1, 0.5, gaps=1) + gappy_ngram(2, 0.5, gaps=0) + gappy_ngram(4, 0.8, gaps=1),
    mismatch(3, 1),
    ngram(2) + 0.5 * gappy_ngram(2, 0.5) + 2.0 * ngram(1),
    ngram(2) + mismatch(2, 2),
]


def random_lattice(rng, n_states=6, n_symbols=3, epsilon=True) -> Automaton:
    """Arcs between any two states, some of them parallel, some silent, and several ends."""
    arcs = [
        (source, target, rng.integers(0 if epsilon else 1, n_symbols + 1), rng.uniform(0.1, 1.0))
        for source, target in combinations(range(n_states), 2)
        for _ in range(rng.integers(0, 3))
    ]
    return Automaton.from_arcs(arcs, {n_states - 1: 1.0, int(rng.integers(n_states)): 0.5})


def lattices(count=6, seed=0, **options) -> Lattices:
    rng = np.random.default_rng(seed)
    return Lattices.from_automata([random_lattice(rng, **options) for _ in range(count)])


def strings(letters="abc", lengths=(0, 1, 2, 3, 5, 9, 14), seed=0) -> Strings:
    rng = np.random.default_rng(seed)
    return Strings.from_list(["".join(rng.choice(list(letters), length)) for length in lengths])


def gram(phi, batch) -> np.ndarray:
    phi = phi.resolve(Shape.of(batch)).learn(batch)
    matrix = materialize(phi, batch)
    return (matrix @ matrix.T).toarray()


def by_definition(builder, automata, n_symbols) -> np.ndarray:
    T = builder.transducer(n_symbols)
    U = compose(T, invert(T))
    return np.array([[total(compose(compose(x, U), y)) for y in automata] for x in automata])


@pytest.mark.parametrize("builder", BUILDERS, ids=repr)
def test_kernel_of_lattices_is_the_definition(builder):
    batch = lattices()
    wanted = by_definition(builder, [batch.automaton(row) for row in range(len(batch))], 3)
    np.testing.assert_allclose(gram(Rational(builder, posteriors=False), batch), wanted, rtol=1e-6)
    weights = np.array([total(batch.automaton(row)) for row in range(len(batch))])
    np.testing.assert_allclose(gram(Rational(builder), batch), wanted / np.outer(weights, weights), rtol=1e-6)


@pytest.mark.parametrize("builder", BUILDERS, ids=repr)
def test_kernel_of_strings_is_the_definition(builder):
    batch = strings()
    automata = [Automaton.from_string(np.frombuffer(batch[row], np.uint8) - 96) for row in range(len(batch))]
    np.testing.assert_allclose(gram(Rational(builder), batch), by_definition(builder, automata, 3), rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 10])
def test_ngrams_of_strings_are_counted(n):
    batch = strings(lengths=(0, n - 1, n, 40))
    counts = [defaultdict(int) for _ in range(len(batch))]
    for row, found in enumerate(counts):
        for at in range(len(batch[row]) - n + 1):
            found[id_of(batch[row][at : at + n])] += 1
    block = filled(Rational(ngram(n), bits=None), batch)
    assert block == [dict(found) for found in counts]


def written(phi, batch) -> list[list[tuple[int, float]]]:
    """The non-zeros of each row in the order in which they are written."""
    bounds = np.broadcast_to(np.asarray(phi.bound(batch), np.int64), len(batch))
    block = Block.scratch(bounds, phi.dim, dtype=np.float64)
    phi.fill(batch, np.arange(len(batch)), block)
    pairs = list(zip(block.indices.tolist(), block.values.tolist(), strict=True))
    return [pairs[first:stop] for first, stop in zip(block.start, block.end, strict=True)]


def filled(phi, batch) -> list[dict[int, float]]:
    rows = [defaultdict(float) for _ in range(len(batch))]
    for row, pairs in zip(rows, written(phi, batch), strict=True):
        for index, value in pairs:
            row[index] += value
    return [dict(row) for row in rows]


def test_a_string_and_its_lattice_have_the_same_features():
    texts = strings()
    chains = Lattices.from_automata(
        [Automaton.from_string(np.frombuffer(texts[r], np.uint8)) for r in range(len(texts))]
    )
    for builder in (ngram(2), gappy_ngram(3, 0.5), ngram(9)):
        phi = Rational(builder, bits=None)
        assert filled(phi, texts) == filled(phi, chains)


@pytest.mark.parametrize("gaps", [None, 0, 1, 4])
def test_gappy_ngrams_are_sums_over_subsequences(gaps):
    batch = strings(lengths=(11,))
    text, wanted = batch[0], defaultdict(float)
    for places in combinations(range(len(text)), 3):
        skipped = places[2] - places[0] - 2
        if gaps is None or skipped <= gaps:
            wanted[id_of([text[place] for place in places])] += 0.5**skipped
    (found,) = filled(Rational(gappy_ngram(3, 0.5, gaps), bits=None), batch)
    assert found == pytest.approx(dict(wanted))


def test_ngrams_of_long_strings_are_those_of_the_composition():
    batch = strings(lengths=(50, 10))
    for builder in (gappy_ngram(3, 0.5), gappy_ngram(4, 0.5, gaps=2), gappy_ngram(3, 1.0) + ngram(3)):
        kernel = filled(Rational(builder, bits=None), batch)
        composed = Transducer.over(np.array([97, 98, 99]), builder).outputs(batch, np.arange(2), posteriors=False)
        for row, found in enumerate(kernel):
            span = slice(*composed.offsets[row : row + 2])
            wanted = dict(zip(composed.ids[span].tolist(), composed.values[span].tolist(), strict=True))
            wanted = {z: value for z, value in wanted.items() if value > 2.0**-20}
            assert {z: found[z] for z in wanted} == pytest.approx(wanted, rel=1e-4)
            assert sum(found.values()) == pytest.approx(composed.values[span].sum(), rel=1e-4)


def test_what_mismatches_write_are_the_symbols_of_training():
    phi = Rational(mismatch(2, 1), bits=None).learn(Strings.from_list(["ab"]))
    (found,) = filled(phi, Strings.from_list(["bxa"]))
    wanted = defaultdict(float)
    for u in (b"bx", b"xa"):
        for z in product(b"ab", repeat=2):
            if sum(p != q for p, q in zip(u, z, strict=True)) <= 1:
                wanted[id_of(z)] += 1.0
    assert found == wanted
    with pytest.raises(FeatureError, match="has not seen the training data"):
        Rational(mismatch(2, 1)).bound(Strings.from_list(["ab"]))


def test_ids_of_short_texts_are_exact_and_of_others_apart():
    assert letters_of(id_of(b"kernels")) == b"kernels"
    assert letters_of(id_of(b"kernels!")) is None
    texts = [t for n in range(4) for t in product(b"abc", repeat=n)] + list(product(b"ab", repeat=9))
    words = [t for n in range(4) for t in product([1 << 30, 300, 301], repeat=n)][1:]
    ids = [id_of(t) for t in texts + words]
    assert len(set(ids)) == len(ids)
    assert max(ids) < 2**63


@pytest.mark.parametrize("builder", BUILDERS[1:4], ids=repr)
@pytest.mark.parametrize("kept", [True, False])
def test_the_contract_of_maps_is_kept(builder, kept, monkeypatch):
    if not kept:
        monkeypatch.setattr(rational, "KEPT", 0.0)
    check_feature_map(Rational(builder, bits=10), strings())
    check_feature_map(Rational(builder, bits=10), lattices())
    check_feature_map(Rational(builder, bits=10).normalized(), lattices())


@pytest.mark.parametrize(
    "text",
    [
        "Rational(ngram(4))",
        "Rational(gappy_ngram(4, 0.5))",
        "Rational(gappy_ngram(4, 0.5, gaps=3))",
        "Rational(ngram(3) + ngram(4), bits=None).indexed('hash_table')",
        "Rational(ngram(3) + 0.5 * gappy_ngram(4, 0.8), bits=18, posteriors=False).normalized()",
        "Rational(mismatch(5, 1)) + Spectrum(4)",
        "Rational('my.fst')",
    ],
)
def test_expressions_are_read_and_written(text):
    phi = dotadd.parse(text)
    assert repr(phi) == text
    assert dotadd.parse(repr(phi)) == phi


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ngram(4)", "is not a feature map"),
        ("Rational(3)", "no transducer"),
        ("Rational(ngram(0))", "column 10: ngram: n has to be"),
        ("Rational(ngram(2) + 3)", "column 10"),
        ("Rational(ngram(2), bits=99)", "bits"),
        ("Rational(ngram(2)) + ngram(2)", "maps are added to maps"),
        ("Rational(fourgram(2))", "fourgram"),
    ],
)
def test_bad_expressions_are_refused_in_one_line(text, message):
    with pytest.raises(FeatureError, match=message):
        dotadd.parse(text)


def rewriting() -> Automaton:
    """Reads a and b as they come, writes x for each a, y or twice y for each b."""
    return Automaton.from_arcs(
        [(0, 0, 97, 120, 1.0), (0, 0, 98, 121, 0.5), (0, 1, 98, 121, 0.25), (1, 0, 0, 121, 2.0)], {0: 1.0}
    )


def test_a_transducer_of_ones_own_is_composed():
    T, batch = rewriting(), Strings.from_list(["", "a", "ab", "bb"])
    found = filled(Rational(T, bits=None), batch)
    for row in range(len(batch)):
        x = [int(byte) for byte in batch[row]]
        outputs = [path.outputs for path in compose(Automaton.from_string(x), T).paths()]
        assert found[row] == pytest.approx({id_of(z): T.weight(x, z) for z in outputs})


def test_letters_are_the_symbols_that_a_transducer_names():
    symbols = SymbolTable(["b", "a", "word"])
    T = Automaton.from_arcs([(0, 0, 2, 3, 1.0), (0, 0, 1, 1, 1.0)], [0], symbols=symbols)
    phi = Rational(T, bits=None)
    assert filled(phi, Strings.from_list(["ab"])) == [{id_of([3, 1]): 1.0}]
    bad = phi.check(Strings.from_list(["ab", "bxa"]))
    assert (bad.row, bad.column) == (1, 2)
    assert "b'x'" in bad.message
    assert phi.check(Strings.from_list(["ab", "", "b"])) is None


def test_a_transducer_that_writes_in_circles_is_refused():
    endless = Automaton.from_arcs([(0, 0, 1, 1, 1.0), (0, 1, 0, 2, 0.5), (1, 0, 0, 3, 0.5)], [0])
    with pytest.raises(FeatureError, match="writes without reading"):
        Rational(endless)
    silent = Automaton.from_arcs([(0, 0, 1, 1, 1.0), (0, 0, 0, 0, 0.5)], [0])  # in circles, but nothing is written
    assert filled(Rational(silent, bits=None), Strings.from_list(["\1"])) == [{1: pytest.approx(4.0)}]


def test_states_come_back():
    batch = strings()
    for phi in (Rational(mismatch(2, 1)).learn(batch), Rational(rewriting())):
        back = dotadd.parse(repr(phi)).with_state(phi.state())
        assert (materialize(back, batch) != materialize(phi, batch)).nnz == 0


@pytest.mark.parametrize("builder", [ngram(2), ngram(2) + ngram(3), gappy_ngram(2, 0.5), mismatch(2, 1)], ids=repr)
def test_features_have_names(builder):
    batch = strings(lengths=(6, 4))
    phi = Rational(builder, bits=None).learn(batch)
    places = [(row, n, i) for row, pairs in enumerate(written(phi, batch)) for n, (i, _) in enumerate(pairs)]
    rows, nth, ids = (np.array(column) for column in zip(*places, strict=True))
    names, beyond = phi.origins(batch, rows, nth)
    assert (beyond == -1).all()
    assert [id_of(text) for text in names.text] == ids.tolist()
    assert phi.origins(batch, rows[:1], np.array([10**6]))[1][0] == 10**6 - sum(rows == 0)
    if not isinstance(builder, type(mismatch(2, 1))):
        assert phi.invert(ids.astype(np.uint64)).text.tolist() == names.text.tolist()


def test_features_of_lattices_are_called_by_their_labels():
    batch = Lattices.from_automata([Automaton.from_string([300, 7, 300])])
    phi = Rational(ngram(2))
    assert sorted(phi.origins(batch, np.zeros(2, np.int64), np.arange(2))[0].text) == [b"300 7", b"7 300"]


def scaling(weight: float) -> Automaton:
    """Copies a and b, each a times this weight."""
    return Automaton.from_arcs([(0, 0, 97, 97, weight), (0, 0, 98, 98, 1.0)], [0])


def test_features_of_a_transducer_that_is_gone_are_never_anothers():
    batch, w = Strings.from_list(["ab", "ba", "aab"]), np.ones(2**8, np.float32)
    for weight in range(1, 40):  # freed one after the other, so that objects come to lie where others were
        sums = InMemory(Rational(scaling(weight), bits=8), batch).dot([w])[0]
        assert sums.tolist() == [weight, weight, weight**2]


def test_different_transducers_are_different_maps(tmp_path):
    named = Automaton.from_arcs(
        [(0, 0, 97, 97, 1.0), (0, 0, 98, 98, 1.0)], [0], symbols=SymbolTable.of_pairs([("a", 98), ("b", 97)])
    )
    automata = [scaling(1.0), scaling(2.0), named, rewriting()]
    maps = [Rational(T) for T in automata]
    for k, T in enumerate(automata):
        write(T, tmp_path / f"{k}.fst")
        maps.append(Rational(str(tmp_path / f"{k}.fst")).learn(strings()))
    assert len({repr(phi) for phi in maps}) == len({*maps}) == len(maps)


def test_equal_transducers_are_equal_maps_that_come_back_by_their_expression():
    one, other = Rational(scaling(2.0)), Rational(scaling(2.0))
    assert one == other
    assert hash(one) == hash(other)
    assert dotadd.parse(repr(one)) == one


def test_a_map_is_given_no_other_transducer_than_its_expression_names(tmp_path):
    phi = dotadd.parse(repr(Rational(scaling(2.0))))
    with pytest.raises(FeatureError, match="another transducer"):
        phi.with_state(Rational(scaling(3.0)).state())
    write(scaling(2.0), tmp_path / "t.fst")
    phi = dotadd.parse(repr(Rational(str(tmp_path / "t.fst")).learn(strings())))
    write(scaling(3.0), tmp_path / "t.fst")
    with pytest.raises(FeatureError, match=r"t\.fst.* another transducer"):
        phi.learn(strings())


def test_expressions_of_older_models_have_no_digest():
    phi = Rational(scaling(2.0))
    older = dotadd.parse("Rational(None)").with_state(phi.state())
    assert older == phi
    assert filled(older, strings()) == filled(phi, strings())


@pytest.mark.parametrize("text", ["Rational(ngram(2), digest='12')", "Rational(None, digest=3)"])
def test_a_digest_belongs_to_a_transducer_without_expression(text):
    with pytest.raises(FeatureError, match="digest"):
        dotadd.parse(text)


def test_threads_that_meet_keep_all_rows_or_none(monkeypatch):
    """One thread is at its sum when another finds that there is no more room."""
    phi, batch = Rational(gappy_ngram(2, 0.5), bits=8), strings(lengths=[4] * rational.ROWS + [40] * rational.ROWS)
    summing, done = Event(), Event()

    class Slow(np.ndarray):
        @property
        def nbytes(self):
            summing.set()
            done.wait(10.0)
            return 0

    def placed(batch, rows, plain=phi._placed):
        found = plain(batch, rows)
        return found._replace(indices=found.indices.view(Slow)) if rows[0] == 0 else found

    def meet(items, work, threads):
        first = Thread(target=work, args=(items[0],))
        first.start()
        summing.wait(10.0)
        work(items[1])
        done.set()
        first.join()

    monkeypatch.setattr(phi, "_placed", placed)
    monkeypatch.setattr(rational, "for_each", meet)
    monkeypatch.setattr(rational.memory, "available", lambda: 4000)
    view = phi.prepared(batch, threads=2).view(batch)
    assert view is None or int(view.end[-1]) == len(view.indices)
