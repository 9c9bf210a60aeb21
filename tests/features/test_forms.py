"""Forms of w: every exact form is the same function from ids to slots, and the same model comes out of each."""

import numpy as np
import pytest
import scipy.sparse as sp
from naive_features import falling_weights, spectrum, weighted_degree, weighted_degree_kernel
from safetensors import safe_open
from safetensors.numpy import save_file

import dotadd
from dotadd import LinearSVM, Spectrum, WeightedDegree, WeightedSpectrum, check_feature_map
from dotadd.data.batches import DenseRows, SparseRows, Strings
from dotadd.errors import DataError, FeatureError, ModelError
from dotadd.features import Linear, Shape, parse
from dotadd.features.checks import materialize
from dotadd.features.forms import MISSING, Dense, HashedIds, HashTable, SortedArray
from dotadd.features.suffix_array import SuffixArray
from dotadd.features.terms import FORMS, Term
from dotadd.features.trie import Trie
from dotadd.problem.survey import Survey
from dotadd.sources.base import Chunk
from dotadd.sources.memory import MemorySource

EXACT = [HashTable, SortedArray, Trie, SuffixArray]
NAMES = ["hash_table", "sorted_array", "trie", "suffix_array"]


def batches_of_ids(largest, rounds=6, count=400, seed=0):
    """Batches of ids with repetitions within and between them, small ones and the largest among them."""
    rng = np.random.default_rng(seed)
    pool = np.r_[rng.integers(0, largest, 3 * count, np.uint64), np.arange(50, dtype=np.uint64), np.uint64(largest - 1)]
    return [rng.choice(pool, count) for _ in range(rounds)]


def strings(n, length=12, seed=0):
    rng = np.random.default_rng(seed)
    return ["".join(row) for row in np.array(list("ACGT"))[rng.integers(0, 4, (n, length))]]


def labelled(n, classes=2, seed=0):
    """Strings whose label is told, with some noise, by their letters."""
    rng = np.random.default_rng(seed)
    data = strings(n, seed=seed)
    score = np.array([z.count("A") + 2 * (z[3] == "C") - (z[5:7] == "GT") for z in data]) + rng.normal(0, 0.5, n)
    return data, np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)


def learned(phi, batch):
    return phi.resolve(Shape.of(batch)).learn(batch)


# The index


@pytest.mark.parametrize("largest", [2, 1000, 2**40, 2**64 - 1])
@pytest.mark.parametrize("form", EXACT)
def test_each_id_has_one_slot_for_ever(form, largest):
    index, known = form(), {}
    for ids in batches_of_ids(largest):
        new = [i for i in ids.tolist() if i not in known]
        for i in sorted(new) if form is SortedArray else new:
            known.setdefault(i, len(known))
        assert index.slots(ids, insert=True).tolist() == [known[i] for i in ids.tolist()]
        everything = np.array(list(known), np.uint64)
        assert index.size == len(known)
        assert index.find(everything).tolist() == list(known.values())
        assert np.array_equal(index.ids()[index.find(everything)], everything)


@pytest.mark.parametrize("form", EXACT)
def test_an_id_that_was_not_inserted_is_missing(form):
    index = form()
    probe = np.array([0, 5, 6, 2**20, 2**63, 2**64 - 2], np.uint64)
    assert (index.find(probe) == MISSING).all()
    index.insert(np.array([5, 2**20], np.uint64))
    assert (index.find(probe) == MISSING).tolist() == [True, False, True, False, True, True]
    assert index.find(np.empty(0, np.uint64)).tolist() == []


@pytest.mark.parametrize("form", EXACT)
def test_an_index_grows_over_many_sizes(form):
    index = form()
    ids = np.random.default_rng(0).permutation(20_000).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for part in np.array_split(ids, 7):
        index.insert(part)
    assert index.size == len(ids)
    assert np.array_equal(np.sort(index.find(ids)), np.arange(len(ids), dtype=np.uint64))
    assert np.array_equal(index.ids()[index.find(ids)], ids)


def test_dense_takes_the_id_for_the_slot():
    index = Dense()
    assert index.slots(np.array([7, 3], np.uint64), insert=True).tolist() == [7, 3]
    assert index.size == 8
    assert index.find(np.array([0, 8], np.uint64)).tolist() == [0, MISSING]


def test_hashed_is_the_hash_of_the_map_that_is_called_so():
    ids = np.array([0, 1, 77, 2**40], np.int64)
    rows = SparseRows(np.array([0, 4]), ids, None, 2**40 + 1)
    index = HashedIds(5)
    found = np.sort(index.slots(ids.astype(np.uint64), insert=True))
    assert np.array_equal(found, np.sort(materialize(Linear().hashed(5), rows).indices))
    assert index.size == 32


@pytest.mark.parametrize("form", [*EXACT, Dense])
def test_the_state_makes_the_index_again_and_is_never_written_to(form):
    first, second, third = batches_of_ids(5000, 3)
    index = form()
    index.insert(first)
    state = {name: array.copy() for name, array in index.state().items()}
    for array in state.values():
        array.flags.writeable = False
    again = form.from_state(state)
    kept = {name: array.copy() for name, array in state.items()}
    assert np.array_equal(again.find(first), index.find(first))
    assert np.array_equal(again.slots(second, insert=True), index.slots(second, insert=True))
    assert all(np.array_equal(state[name], kept[name]) for name in state)
    assert form is Dense or 0 < index.nbytes == sum(array.nbytes for array in index.state().values())

    size, twin = index.size, index.copy()
    twin.insert(third)
    assert index.size == size
    index.insert(third[::-1])
    assert np.array_equal(index.ids()[index.find(third)], twin.ids()[twin.find(third)])


@pytest.mark.parametrize("form", EXACT)
def test_damaged_numbers_lead_to_no_slot_outside_of_w(form):
    rng = np.random.default_rng(0)
    index, (ids, others) = form(), batches_of_ids(2**40, 2)
    index.insert(ids)
    for _ in range(5):
        state = index.state()
        damaged = {
            name: rng.integers(0, np.iinfo(array.dtype).max, array.shape, array.dtype) if len(array) > 3 else array
            for name, array in state.items()
        }
        slots = form.from_state(damaged).find(np.r_[ids, others])
        assert ((slots < index.size) | (slots == MISSING)).all()


@pytest.mark.parametrize("form", [*EXACT, Dense])
def test_a_state_of_the_wrong_shape_is_refused(form):
    index = form()
    index.insert(np.arange(20, dtype=np.uint64))
    state = index.state()
    for name, array in state.items():
        for wrong in (array[None], array.astype(np.float32), np.r_[array, array, array][:-1]):
            with pytest.raises(ValueError, match=r"type|places|nodes"):
                form.from_state(state | {name: wrong})
        with pytest.raises(KeyError):
            form.from_state({other: state[other] for other in state if other != name})


# The map


@pytest.mark.parametrize("form", [*NAMES, "dense"])
def test_an_indexed_map_keeps_the_contract(form):
    batch = Strings.from_list(["ACGTTACG", "", "ACG", "TTTTTTTT", "ACGTTACC"])
    check_feature_map(learned(WeightedDegree(4).indexed(form), batch), batch)
    if form == "hash_table":
        check_feature_map(learned(0.5 * (Spectrum(3) + WeightedDegree(2)).indexed(form) + Spectrum(1), batch), batch)
        rows = SparseRows(np.array([0, 2, 2, 4]), np.array([3, 2**40, 3, 9]), np.array([1.0, 2.0, 3.0, 4.0]), 2**41)
        check_feature_map(learned(Linear().indexed(form), rows), rows)
        check_feature_map(learned(Linear().indexed(form).hashed(4), rows), rows)


@pytest.mark.parametrize("form", NAMES)
def test_an_indexed_map_has_the_features_that_occur_and_leaves_out_others(form):
    train, test = Strings.from_list(strings(30)), Strings.from_list(strings(10, seed=1))
    inner = WeightedDegree(5).resolve(Shape.of(train))
    phi = inner.indexed(form).learn(train)
    ids = phi.index.ids().astype(np.int64)
    whole = materialize(inner, train)
    assert np.array_equal(np.sort(ids), np.unique(whole.indices))
    assert abs(materialize(phi, train) - whole[:, ids]).max() == 0.0
    whole = materialize(inner, test)
    assert not set(whole.indices) <= set(ids.tolist()), "this test is about features that were not seen"
    assert abs(materialize(phi, test) - whole[:, ids]).max() == 0.0


@pytest.mark.parametrize("form", NAMES)
def test_learning_in_chunks_is_learning_at_once(form):
    batch = Strings.from_list(strings(40))
    inner = WeightedDegree(4).resolve(Shape.of(batch))
    phi, sizes = inner.indexed(form), [0]
    for first in (0, 7, 20, 20):
        before = phi
        phi = phi.learn(batch.slice(first, {0: 7, 7: 20}.get(first, 40)))
        if before.index is not None:
            assert before.dim == sizes[-1], "a map that was learned before must not change"
            assert np.array_equal(phi.index.ids()[: before.dim], before.index.ids())
        sizes.append(phi.dim)
    assert sizes[-1] == sizes[-2], "the same rows again bring nothing new"
    at_once = inner.indexed(form).learn(batch)
    assert set(phi.index.ids().tolist()) == set(at_once.index.ids().tolist())
    order = at_once.index.find(phi.index.ids()).astype(np.int64)
    assert abs(materialize(phi, batch) - materialize(at_once, batch)[:, order]).max() == 0.0


@pytest.mark.parametrize("form", NAMES)
def test_many_blocks_of_ids_are_learned(form, monkeypatch):
    monkeypatch.setattr("dotadd.features.learning.FEWEST_IDS", 50)
    monkeypatch.setattr("dotadd.features.learning.MOST_IDS", 200)
    batch = Strings.from_list([*strings(20), "", "ACGT" * 30])
    phi = learned(Spectrum(6).indexed(form), batch)
    assert np.array_equal(np.sort(phi.index.ids()), np.unique(materialize(Spectrum(6), batch).indices))


@pytest.mark.parametrize("form", NAMES)
def test_a_learner_finds_chunk_by_chunk_what_is_learned_at_once(form):
    batch = Strings.from_list(strings(40))
    inner = Spectrum(4).indexed(form) + 0.5 * WeightedDegree(3).indexed(form).hashed(20) + Spectrum(2).normalized()
    learner = inner.resolve(Shape.of(batch)).learner()
    for first in range(0, 40, 3):
        learner.see(batch.slice(first, min(first + 3, 40)))
    by_chunks, at_once = learner.done(), learned(inner, batch)
    assert by_chunks.dim == at_once.dim
    assert by_chunks.parts[0].index.ids().tolist() == at_once.parts[0].index.ids().tolist() or form == "sorted_array"
    gram, wanted = ((rows @ rows.T).toarray() for rows in (materialize(by_chunks, batch), materialize(at_once, batch)))
    np.testing.assert_allclose(gram, wanted)


@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        "Rational(mismatch(3, 1), bits=None).indexed({form!r})",
        "Rational(mismatch(9, 1), bits=None).normalized().indexed({form!r})",
        "Spectrum(2) + 2.0 * (Rational(mismatch(2, 1), bits=None) + Rational(ngram(2))).indexed({form!r})",
        "(Spectrum(3).indexed() + Spectrum(4).indexed()).indexed({form!r})",
        "(Rational(mismatch(2, 1), bits=None).indexed() + Rational(mismatch(3, 1))).indexed({form!r}).hashed(20)",
    ],
)
def test_letters_that_come_late_bring_features_to_rows_that_came_before(form, text):
    texts = [z.translate(str.maketrans("GT", "AC")) if n < 30 else z for n, z in enumerate(strings(40))]
    batch = Strings.from_list(texts)

    class Pieces(MemorySource):
        def chunks(self, *args, **options):
            for whole in super().chunks():
                yield from (whole.slice(first, first + 7) for first in range(0, 40, 7))

    source = Pieces(Chunk(batch, np.arange(40) % 2, None, 0))

    def resolved(chunk, shape):
        return parse(text.format(form=form)).resolve(shape)

    by_chunks, at_once = Survey.of(source, resolved, 40).phi, learned(parse(text.format(form=form)), batch)
    assert by_chunks.dim == at_once.dim
    for name, array in at_once.state().items():
        if form != "sorted_array" or not name.endswith("index.ids"):  # which takes some time to be sorted
            np.testing.assert_array_equal(by_chunks.state()[name], array, name)
    gram, wanted = ((rows @ rows.T).toarray() for rows in (materialize(by_chunks, batch), materialize(at_once, batch)))
    np.testing.assert_allclose(gram, wanted)


@pytest.mark.parametrize("form", NAMES)
def test_an_index_is_not_copied_for_each_chunk(form, monkeypatch):
    """What is moved while learning, by copies of the index and merges into it, is no more than what was seen."""
    moved, index = [], FORMS[form]
    copy, insert = index.copy, index.insert

    def watched_copy(self):
        moved.append(self.size)
        return copy(self)

    def watched_insert(self, ids):
        insert(self, ids)
        moved.append(self.size if self.moves else 0)

    monkeypatch.setattr(index, "copy", watched_copy)
    monkeypatch.setattr(index, "insert", watched_insert)
    monkeypatch.setattr("dotadd.features.learning.FEWEST_IDS", 16)
    batch = Strings.from_list(strings(400))
    learner = Spectrum(6).indexed(form).normalized().resolve(Shape.of(batch)).learner()
    for first in range(0, 400, 2):
        learner.see(batch.slice(first, first + 2))
    assert learner.done().dim > 1000
    seen = sum(len(z) - 5 for z in strings(400))
    assert sum(moved) <= 3 * seen


@pytest.mark.parametrize("form", NAMES)
def test_a_space_too_large_to_number_densely_is_exact(form):
    windows = strings(12, 30) + [z[:15] + "A" * 15 for z in strings(12, 30)]
    batch = Strings.from_list(windows)
    phi = learned(WeightedDegree(20).indexed(form), batch)
    assert phi.phi.dim > 2**44
    rows = materialize(phi, batch)
    kernel = [[weighted_degree_kernel(a, b, falling_weights(20)) for b in windows] for a in windows]
    assert np.allclose((rows @ rows.T).toarray(), kernel)


def test_ids_are_exact_up_to_63_bits():
    windows = [*strings(5, 40), "T" * 40]
    ids = learned(Spectrum(31).indexed("trie"), Strings.from_list(windows)).index.ids()
    assert set(ids.tolist()) == {i for z in windows for i in spectrum(z, 31, "ACGT")}
    betas = falling_weights(30)
    ids = learned(WeightedDegree(30, span=(0, 30)).indexed(), Strings.from_list([z[:3] for z in windows])).index.ids()
    assert set(ids.tolist()) == {i for z in windows for i in weighted_degree(z[:3], betas, "ACGT")}


def test_normalizing_counts_features_that_were_never_seen():
    train, test = Strings.from_list(["AAAA", "AACC"]), Strings.from_list(["AACG"])
    for phi in (Spectrum(2).indexed("trie").normalized(), Spectrum(2).normalized().indexed("trie")):
        assert repr(phi) == "Spectrum(2).normalized().indexed('trie')"
        phi = learned(phi, train)
        assert np.allclose(materialize(phi, train).power(2).sum(axis=1), 1)
        assert np.allclose(sorted(materialize(phi, test).data), [3**-0.5, 3**-0.5])  # AA and AC; CG is not known
    whole = learned((Spectrum(2).indexed() + Spectrum(1)).normalized(), train)
    assert np.allclose(materialize(whole, test).power(2).sum(axis=1), 1)  # of what is known


def test_a_map_that_has_learned_nothing_says_so():
    with pytest.raises(FeatureError, match=r"has not seen the training data.*learn"):
        WeightedDegree(3).indexed().resolve(Shape("strings", length=5)).dim  # noqa: B018


def test_spaces_that_are_too_large_are_refused_with_what_to_do():
    data, y = labelled(10)
    with pytest.raises(FeatureError, match=r"spans .* more than fit in memory.*\.hashed\(24\).*\.indexed\("):
        LinearSVM(WeightedDegree(20, length=141)).fit(data, y)
    with pytest.raises(FeatureError, match=r"spans .* more than fit in memory"):
        LinearSVM(Spectrum(20) + Spectrum(20)).fit(data, y)
    for phi in (WeightedDegree(32).indexed(), WeightedSpectrum(32).indexed("trie"), (Spectrum(31) * 2 + Spectrum(31))):
        with pytest.raises(FeatureError, match=r"too many to be numbered"):
            LinearSVM(phi + Spectrum(31) if phi.is_sum else phi).fit(data, y)


def test_the_expression_is_read_back_and_an_unknown_form_is_refused():
    for text in (
        'WeightedDegree(20).indexed("hash_table")',
        "(Spectrum(3) + 0.5 * Spectrum(2).indexed('trie')).indexed('sorted_array')",
        "Linear().indexed('dense').hashed(4) + Linear()",
    ):
        assert repr(parse(repr(parse(text)))) == repr(parse(text))
        assert parse(repr(parse(text))) == parse(text)
    assert parse("Spectrum(3).indexed()") == Term(Spectrum(3), form="hash_table") != Term(Spectrum(3), form="trie")
    assert hash(parse("Spectrum(3).indexed()")) == hash(Term(Spectrum(3), form="hash_table"))
    with pytest.raises(FeatureError, match=r"column 1: .indexed: there is no form 'tree'.*hash_table"):
        parse("Spectrum(3).indexed('tree')")


def test_features_have_the_names_of_the_map_inside():
    train, test = Strings.from_list(["ACGA"]), Strings.from_list(["GACGT"])
    phi = learned(WeightedSpectrum(2).indexed("trie"), train)
    assert set(phi.invert(np.arange(phi.dim)).text.tolist()) == {b"A", b"C", b"G", b"AC", b"CG", b"GA"}
    names, beyond = phi.origins(test, np.zeros(9, np.int64), np.arange(9))
    assert names.text[:7].tolist() == [b"G", b"A", b"C", b"G", b"GA", b"AC", b"CG"]  # T and GT are not known
    assert beyond.tolist() == [-1] * 7 + [0, 1]


# The model


@pytest.mark.parametrize("classes", [2, 3])
def test_the_same_model_is_trained_in_each_exact_form(tmp_path, classes):
    data, y = labelled(120, classes)
    test = strings(40, seed=7)
    options = {"tol": 1e-6, "random_state": 0, "dtype": "float64", "C": 0.3}
    dense = LinearSVM(WeightedDegree(4), **options).fit(data, y)
    truth = dense.decision_function(test)
    for form in [*NAMES, "dense"]:
        phi = WeightedDegree(4).indexed(form)
        svm = LinearSVM(phi, **options).fit(data, y)
        assert phi.index is None, "fit must not change its parameters"
        assert np.allclose(svm.model_.training["primal"], dense.model_.training["primal"], rtol=1e-6)
        ids = svm.model_.phi.index.ids().astype(np.int64)
        assert np.allclose(svm.coef_, dense.coef_[:, ids], atol=1e-3)
        assert np.count_nonzero(dense.coef_) == np.count_nonzero(dense.coef_[:, ids])
        assert np.allclose(svm.decision_function(test), truth, atol=1e-3)

        svm.save(tmp_path / "m")
        loaded = dotadd.load(tmp_path / "m")
        assert np.array_equal(loaded.decision_function(test), svm.decision_function(test))
        assert all(not array.flags.owndata for array in loaded.phi.state().values() if len(array) > 3), "mapped"
        loaded.save(tmp_path / "again")
        assert np.array_equal(dotadd.load(tmp_path / "again").decision_function(test), svm.decision_function(test))


def test_mixed_forms_are_a_stack(tmp_path):
    data, y = labelled(80)
    test = strings(30, seed=3)
    parts = [WeightedDegree(3), Spectrum(4), 0.5 * Spectrum(3).normalized(), WeightedSpectrum(2)]
    forms = ["trie", "sorted_array", "hash_table"]
    mixed = sum((part.indexed(form) for part, form in zip(parts[1:], forms, strict=True)), start=parts[0])
    options = {"tol": 1e-6, "random_state": 0, "dtype": "float64"}
    dense = LinearSVM(sum(parts[1:], start=parts[0]), **options).fit(data, y)
    svm = LinearSVM(mixed, **options).fit(data, y)
    assert svm.result_.primal == pytest.approx(dense.result_.primal, rel=1e-5)
    assert np.allclose(svm.decision_function(test), dense.decision_function(test), atol=1e-3)
    svm.save(tmp_path / "m")
    loaded = dotadd.load(tmp_path / "m")
    assert repr(loaded.phi) == repr(svm.model_.phi)
    assert np.array_equal(loaded.decision_function(test), svm.decision_function(test))


def test_sparse_rows_may_have_indices_as_large_as_they_like(tmp_path):
    rng = np.random.default_rng(0)
    narrow = sp.random_array((60, 20), density=0.3, rng=rng, format="csr", dtype=np.float32)
    y = np.where(narrow @ rng.normal(size=20) > 0, 1, -1)
    far = np.sort(rng.choice(2**40, 20, replace=False))
    wide = sp.csr_array((narrow.data, far[narrow.indices], narrow.indptr), (60, 2**40))
    options = {"tol": 1e-6, "random_state": 0}
    plain = LinearSVM(**options).fit(narrow, y)
    svm = LinearSVM(Linear().indexed("sorted_array"), **options).fit(wide, y)
    assert svm.coef_.shape == (1, len(np.unique(narrow.indices)))
    assert np.allclose(svm.decision_function(wide), plain.decision_function(narrow), atol=1e-3)

    lines = [
        f"{label} " + " ".join(f"{far[i] + 1}:{v:.9g}" for i, v in zip(row.indices, row.data, strict=True))
        for label, row in zip(y, (narrow[[k]] for k in range(60)), strict=True)
    ]
    (tmp_path / "train").write_text("\n".join(lines) + "\n")
    (tmp_path / "test").write_text("\n".join(f"{line} {2**50}:5" for line in lines) + "\n")
    from_file = LinearSVM("Linear().indexed('trie')", **options).fit(str(tmp_path / "train"))
    assert np.allclose(from_file.decision_function(str(tmp_path / "test")), svm.decision_function(wide), atol=1e-3)


def test_columns_beyond_any_memory_are_refused_without_an_index():
    rows = sp.csr_array((np.ones(2), np.array([3, 2**50 - 1]), np.array([0, 1, 2])), (2, 2**50))
    with pytest.raises(
        DataError, match=r"row 1: index 1,125,899,906,842,624 .* asks for .*\.hashed\(24\), or \.indexed"
    ):
        LinearSVM().fit(rows, [1, -1])


def test_a_damaged_index_in_a_model_file_is_refused_in_one_line(tmp_path):
    data, y = labelled(30)
    path = tmp_path / "m"
    LinearSVM(Spectrum(2) + WeightedDegree(3).indexed("hash_table"), tol=0.1).fit(data, y).save(path)
    with safe_open(path, framework="np") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert '"format": 2' in metadata["dotadd"]
    del metadata["checksum"]  # which would tell first
    assert {"phi.1.index.ids", "phi.1.index.table"} < set(tensors)
    for name, wrong in (
        ("phi.1.index.table", None),
        ("phi.1.index.table", tensors["phi.1.index.table"][:-1]),
        ("phi.1.index.ids", tensors["phi.1.index.ids"].astype(np.int64)),
        ("phi.1.index.ids", tensors["phi.1.index.ids"][1:]),
    ):
        changed = {key: value for key, value in (tensors | {name: wrong}).items() if value is not None}
        save_file(changed, path, metadata=metadata)
        with pytest.raises(ModelError, match=r"has learned is damaged|do not fit") as caught:
            dotadd.load(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "learns"),
    [
        ("Linear()", False),
        ("(2.0 * Linear() + Polynomial(2)).normalized()", False),
        ("Spectrum(3).normalized().hashed(8)", False),
        ("Rational(ngram(2))", False),
        ("Rational('my.fst')", False),
        ("Rational(mismatch(2, 1))", True),
        ("Spectrum(3).indexed()", True),
        ("0.5 * (Spectrum(2) + Spectrum(3).indexed().hashed(8))", True),
    ],
)
def test_a_map_says_whether_it_learns(text, learns):
    assert parse(text).learns is learns


@pytest.mark.parametrize(
    ("text", "readings"),
    [("2.0 * Linear().normalized()", 1), ("Linear().indexed()", 2), ("Linear().normalized().indexed() + Linear()", 2)],
)
def test_data_is_read_once_more_only_for_maps_that_learn(text, readings):
    class Counting(MemorySource):
        count = 0

        def chunks(self, *args, **options):
            self.count += 1
            return super().chunks(*args, **options)

    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    source = Counting(Chunk(DenseRows(X), np.arange(20) % 2, None, 0))
    Survey.of(source, lambda chunk, shape: parse(text).resolve(shape), 100)
    assert source.count == readings


def test_a_map_of_ones_own_that_learns_need_not_say_so():
    class Own(Spectrum):
        def learn(self, batch):
            return self

    assert Own(2).normalized().learns
    assert not Spectrum(2).learns
