"""AllSubstrings against the definition of its kernel, its tree against all substrings, its sums against its rows."""

from __future__ import annotations

import naive_features as naive
import numpy as np
import pytest

import dotadd
from dotadd import AllSubstrings, LinearSVM, Spectrum, check_feature_map
from dotadd.data.batches import Strings
from dotadd.errors import FeatureError, StreamingWarning
from dotadd.features import Shape, parse
from dotadd.features import substrings as module
from dotadd.features.alphabet import FOREIGN
from dotadd.features.checks import materialize
from dotadd.features.occurrences import non_zeros
from dotadd.features.suffix_sort import suffix_array
from dotadd.features.suffix_tree import SuffixTree
from dotadd.problem.examples import InMemory

RNG = np.random.default_rng(0)


def random_bytes(length, letters, first=97):
    return bytes((RNG.integers(0, letters, length) + first).astype(np.uint8))


def some_of(letters):
    return [random_bytes(length, letters) for length in RNG.integers(0, 25, 5)]


TEXTS = [
    ([b"banana", b"", b"ananas"], [b"bananas and ananas", b"x", b"", b"nab"]),
    ([b"a"], [b"a", b"aaa", b"b"]),
    ([b"aaaaaaaa", b"aaa", b"aaa"], [b"aaaaaaaaaaaa", b"aabaa"]),
    ([bytes(range(256)), bytes(range(256))[::-1], b"a"], [bytes(range(50, 200)), b"\xff\x00\x01\xff"]),
    (["grüße äöü €".encode(), "grün".encode()], ["grüne größe".encode()]),
    *((some_of(letters), some_of(letters + more)) for letters in (1, 2, 3, 4) for more in (0, 1, 1)),
]
MAPS = [
    AllSubstrings(decay=0.7),
    AllSubstrings(),
    AllSubstrings(decay=0.5, up_to=3),
    AllSubstrings(up_to=1),
    AllSubstrings(weights=(0, 2, 0, 1)),
    AllSubstrings(weights=(1, 0, 0, 3, 1), up_to=4),
]


def weight_of(phi):
    def weight(n):
        if phi.up_to is not None and n > phi.up_to:
            return 0.0
        if phi.weights is not None:
            return phi.weights[n - 1] if n <= len(phi.weights) else 0.0
        return phi.decay**n

    return weight


def fitted(phi, strings):
    batch = Strings.from_list(strings)
    return phi.resolve(Shape.of(batch)).learn(batch)


@pytest.mark.parametrize("phi", MAPS, ids=repr)
@pytest.mark.parametrize(("train", "test"), TEXTS)
def test_inner_products_with_training_strings_are_the_kernel(phi, train, test):
    both, weight = train + test, weight_of(phi)
    rows = materialize(fitted(phi, train), Strings.from_list(both))
    wanted = [[naive.substring_kernel(a, b, weight) for b in both] for a in train]
    np.testing.assert_allclose((rows[: len(train)] @ rows.T).toarray(), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("phi", MAPS, ids=repr)
@pytest.mark.parametrize(("train", "test"), TEXTS[:5])
def test_other_strings_are_taken_to_the_space_of_training_strings(phi, train, test):
    rows = materialize(fitted(phi, train), Strings.from_list(test))
    wanted = np.array([naive.in_span(z, naive.substring_sets(train), weight_of(phi)) for z in test])
    np.testing.assert_allclose((rows @ rows.T).toarray(), wanted @ wanted.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("phi", [MAPS[0], MAPS[4], AllSubstrings(decay=0.9, alphabet="xyz", span=(1, -1))], ids=repr)
def test_the_map_keeps_the_contract(phi):
    strings = [b"xyzzyx", b"", b"zzzzyxyxz", b"x", b"yxyzzyx"]
    batch = Strings.from_list(strings)
    phi = fitted(phi, strings[:3])
    check_feature_map(phi, batch)
    check_feature_map(fitted(Spectrum(2, alphabet="bytes") + 0.5 * phi.normalized(), strings), batch)
    check_feature_map(fitted((phi + Spectrum(1, alphabet="bytes")).hashed(5), strings), batch)
    check_feature_map(fitted(phi.indexed("sorted_array").normalized(), strings), batch)


def test_there_are_at_most_two_slots_a_letter_and_one_for_each_set_of_substrings():
    for train, _ in TEXTS:
        phi = fitted(AllSubstrings(), train)
        assert phi.dim == len(naive.substring_sets(train)) <= 2 * sum(map(len, train))


def test_suffixes_are_sorted():
    for letters in (1, 2, 3, 9):
        for length in (*range(1, 12), 60, 200):
            text = np.r_[RNG.integers(1, letters + 1, length), 0].astype(np.int32)
            wanted = sorted(range(len(text)), key=[text[i:].tolist() for i in range(len(text))].__getitem__)
            assert suffix_array(text, letters + 1).tolist() == wanted


def test_a_link_leads_to_the_node_without_the_first_letter():
    for train, _ in TEXTS:
        tree = fitted(AllSubstrings(), train).tree
        text = tree.text.tobytes()
        longest = [text[a : a + d] for a, d in tree.edge.tolist()]
        assert all(longest[link] == s[1:] for (_, _, link, _), s in zip(tree.node[:-1].tolist(), longest, strict=False))
        assert len(set(longest)) == len(longest)


@pytest.mark.parametrize("many", [True, False])
def test_tables_and_walks_do_what_rows_do(many, monkeypatch):
    monkeypatch.setattr(module, "PASSED", 10**9 if many else 0)
    train, test = some_of(3), some_of(4)
    phi, batch = fitted(AllSubstrings(decay=0.8), train), Strings.from_list(train + test)
    rows = materialize(phi, batch)
    w, coefficients = RNG.normal(size=phi.dim), RNG.normal(size=len(batch))
    for room in (True, False):
        monkeypatch.setattr(module, "has_room", lambda *_, room=room: room)
        for threads in (1, 2, 3):
            examples, sums = InMemory(phi, batch, dtype=np.float64, threads=threads), np.zeros(phi.dim)
            assert (examples.phi.loci is not None) == room
            np.testing.assert_allclose(examples.dot([w, -w]), [rows @ w, -(rows @ w)], atol=1e-6)
            examples.add([coefficients], [sums])
            np.testing.assert_allclose(sums, rows.T @ coefficients, atol=1e-6)
            np.testing.assert_allclose(examples.squared_norms(), (rows * rows).sum(axis=1), rtol=1e-9)


def test_bits_are_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(module, "CALL_LETTERS", 300)
    batch = Strings.from_list([random_bytes(40, 4) for _ in range(100)])
    phi = fitted(AllSubstrings(decay=0.9), [batch[row] for row in range(60)]).normalized()
    w, coefficients = RNG.normal(size=phi.dim).astype(np.float32), np.linspace(-1, 1, len(batch))
    seen = set()
    for threads in (1, 2, 5):
        examples, sums = InMemory(phi, batch, threads=threads), np.zeros(phi.dim, np.float32)
        examples.add([coefficients], [sums])
        seen.add((examples.dot([w])[0].tobytes(), sums.tobytes(), examples.squared_norms().tobytes()))
    assert len(seen) == 1


def test_no_substring_crosses_a_border_or_a_foreign_letter():
    phi = fitted(AllSubstrings(alphabet="dna"), [b"ACNGT", b"CC"])
    assert sorted(phi.get_feature_names_out().tolist()) == ["A", "C", "CC", "G", "T"]
    rows = materialize(phi, Strings.from_list([b"ACNGT", b"ACGT", b"acgt"]))
    gram = (rows @ rows.T).toarray()
    assert gram[0, 0] == pytest.approx(6)  # A, C, AC, G, T, GT
    assert gram[0, 1] == gram[0, 2] == pytest.approx(6)


def test_chunks_are_learned_as_one_and_parts_are_joined():
    strings = some_of(3) + some_of(2)
    batch, at_once = Strings.from_list(strings), fitted(AllSubstrings(decay=0.5), strings)
    by_chunks, first, second = (AllSubstrings(decay=0.5).learner() for _ in range(3))
    for start in range(0, len(strings), 3):
        by_chunks.see(batch.slice(start, min(start + 3, len(strings))))
    first.see(batch.slice(0, 4))
    second.see(batch.slice(4, len(strings)))
    first.join(second)
    for learner in (by_chunks, first):
        assert not learner.again()
        for name, array in learner.done().state().items():
            np.testing.assert_array_equal(array, at_once.state()[name], name)


def test_where_features_come_from_and_what_they_are_called():
    train = [b"the cat and the cat", b"a dog"]
    phi, batch = fitted(AllSubstrings(decay=0.9), train), Strings.from_list([*train, b"the dogs and cats"])
    for row in range(len(batch)):
        slots, values = non_zeros(phi, batch, row)
        found = phi.occurrences(batch, row)
        np.testing.assert_allclose(
            np.bincount(found.slots, found.values, phi.dim), np.bincount(slots, values, phi.dim), atol=1e-6
        )
        names = phi.get_feature_names_out()
        for slot, first, stop in zip(found.slots.tolist(), found.first.tolist(), found.stop.tolist(), strict=True):
            here, name = batch[row][first:stop].decode(), names[slot]
            assert here.startswith(name) or name.startswith(here)
    names = phi.get_feature_names_out().tolist()
    assert "the cat" in names
    assert len(set(names)) == len(names)


def labelled():
    strings = [random_bytes(30, 4) for _ in range(80)]
    y = np.arange(80) % 2
    return [z[:10] + b"bad" + z[13:] if label else z for z, label in zip(strings, y, strict=True)], y


def test_a_linear_machine_is_the_machine_of_the_kernel(tmp_path):
    """By scikit-learn's SVC on the kernel's definition: the same outputs, also of strings that are new."""
    from sklearn.svm import SVC

    data, y = labelled()
    train, test = data[:50], [*data[50:], b"", b"zzz", b"badbadbad"]
    weight = weight_of(AllSubstrings(decay=0.6))
    gram = np.array([[naive.substring_kernel(a, b, weight) for b in train] for a in train])
    other = np.array([[naive.substring_kernel(a, b, weight) for b in train] for a in test])
    machine = SVC(C=1.0, kernel="precomputed", tol=1e-8).fit(gram, y[:50])
    svm = LinearSVM("AllSubstrings(decay=0.6)", solver="ocas", tol=1e-5, intercept="free").fit(train, y[:50])
    assert svm.result_.converged
    np.testing.assert_allclose(svm.decision_function(test), machine.decision_function(other), atol=2e-3)
    svm.save(tmp_path / "m")
    assert np.array_equal(dotadd.load(tmp_path / "m").decision_function(test), svm.decision_function(test))
    by_rows = LinearSVM("AllSubstrings(decay=0.6)", solver="dcd", intercept="free", random_state=0).fit(train, y[:50])
    assert by_rows.result_.converged
    assert by_rows.result_.primal == pytest.approx(svm.result_.primal, rel=2e-3)


def test_training_from_disk_has_the_same_optimum(tmp_path):
    data, y = labelled()
    lines = "".join(f"{label},{z.decode()}\n" for z, label in zip(data, y, strict=True))
    (tmp_path / "train.csv").write_text(f"label,text\n{lines}")
    options = {"tol": 1e-4, "random_state": 0}
    held = LinearSVM("AllSubstrings(decay=0.6).normalized()", **options).fit(str(tmp_path / "train.csv"))
    streamed = LinearSVM("AllSubstrings(decay=0.6).normalized()", memory="1 kB", **options)
    with pytest.warns(StreamingWarning):
        streamed.fit(str(tmp_path / "train.csv"))
    assert streamed.result_.primal == pytest.approx(held.result_.primal, rel=1e-3)


def test_what_is_wrong_is_said_in_one_line():
    for make, said in (
        (lambda: AllSubstrings(decay=0), "decay has to be a number above 0 and at most 1"),
        (lambda: AllSubstrings(decay=1.5), "decay has to be"),
        (lambda: AllSubstrings(decay=float("nan")), "decay has to be"),
        (lambda: AllSubstrings(weights=(1, -1)), "weights has to be numbers from 0"),
        (lambda: AllSubstrings(weights=()), "weights has to be"),
        (lambda: AllSubstrings(weights="uniform"), "weights has to be"),
        (lambda: AllSubstrings(weights=3), "weights has to be"),
        (lambda: AllSubstrings(weights=(0, 1), up_to=1), "nothing is left to count"),
        (lambda: AllSubstrings(decay=0.5, weights=(1,)), "give decay or weights"),
        (lambda: AllSubstrings(up_to=0), "up_to has to be a whole number from 1"),
        (lambda: AllSubstrings().dim, "has not seen the training data"),
        (lambda: fitted(AllSubstrings(), [b"", b""]), "has found no letter"),
        (lambda: parse("AllSubstrings(decay=2)"), "decay has to be"),
    ):
        with pytest.raises(FeatureError, match=said) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_more_letters_than_there_are_numbers_for_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_LETTERS", 20)
    with pytest.raises(FeatureError, match="numbers at most 20 letters"):
        fitted(AllSubstrings(), [b"0123456789", b"0123456789"])


def test_a_damaged_tree_is_refused_or_leads_nowhere():
    """Whatever stands in the arrays: refused, or features that lie inside of w."""
    train = [*some_of(3), b"banana"]
    phi, batch = fitted(AllSubstrings(decay=0.5), train), Strings.from_list(train + some_of(4))
    kept = 0
    for _ in range(300):
        state = {name: array.copy() for name, array in phi.state().items()}
        array = state[str(RNG.choice(list(state)))]
        for _ in range(int(RNG.integers(1, 4))):
            array[RNG.integers(len(array))] = RNG.integers(0, np.iinfo(array.dtype).max, endpoint=True)
        try:
            other = AllSubstrings(decay=0.5).with_state(state)
        except ValueError:
            continue
        kept += 1
        rows = materialize(other, batch)
        assert rows.shape == (len(batch), phi.dim)
        assert np.isfinite(rows.data).all()
    assert kept > 20, "this test is about trees that are taken for good, too"
    for name, array in phi.state().items():
        for wrong in (array[None], array.astype(np.float32), array[:-1]):
            if name != "text" or wrong.shape != array[:-1].shape:
                with pytest.raises(ValueError, match=r"type|lengths|tree"):
                    AllSubstrings(decay=0.5).with_state(phi.state() | {name: wrong})
    with pytest.raises(ValueError, match="do not count"):
        AllSubstrings(up_to=1).with_state(phi.state())


def test_a_tree_has_room_for_nothing():
    tree = SuffixTree.of(np.array([FOREIGN], np.uint16), 4, 10)
    assert tree.size == 0


def test_time_is_linear_in_letters_that_are_all_alike():
    """No text is bad: a thousand equal letters take nodes that are a thousand deep, and rows are still short."""
    phi = fitted(AllSubstrings(decay=1.0), [b"a" * 3000])
    batch = Strings.from_list([b"a" * 2000])
    assert phi.dim == 3000
    assert np.all(phi.bound(batch) <= 3000)
    rows = materialize(phi, batch)
    assert rows.nnz == 2000
    assert rows[0, 0] == pytest.approx(2000)
