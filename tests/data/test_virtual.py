"""Virtual examples: what is made on demand is what transforming everything beforehand would give, for every solver."""

import naive
import numpy as np
import pytest

import dotadd
from dotadd import KernelSVM, LinearSVM
from dotadd.automata import Automaton
from dotadd.data.batches import DenseRows, Images, Strings
from dotadd.data.transforms import parse
from dotadd.data.virtual import Changes, Originals, VirtualBatch
from dotadd.errors import DataError, DotaddError
from dotadd.features import Linear, NGrams, Rational, Spectrum, WeightedDegree
from dotadd.features.base import Shape
from dotadd.features.on_demand import OnDemand
from dotadd.problem.examples import InMemory
from dotadd.sources.around import Virtual
from dotadd.sources.base import TooLargeError
from dotadd.sources.identity import fingerprint

IMAGES = "translate(1) * rotate(10) * scale(0.1)"
DNA = "shift(2) * reverse_complement()"


def images(n=12, size=(7, 5), seed=0):
    return Images(np.random.default_rng(seed).integers(0, 256, (n, *size)).astype(np.uint8))


def windows(n=20, width=9, seed=0):
    return Strings(np.random.default_rng(seed).choice(np.frombuffer(b"ACGT", np.uint8), n * width), width=width)


def texts(n=20, seed=0):
    rng = np.random.default_rng(seed)
    return Strings.from_list(["".join(rng.choice(list("ACGT"), rng.integers(3, 12))) for _ in range(n)])


BATCHES = {"images": (images, IMAGES), "windows": (windows, DNA), "texts": (texts, DNA)}


def virtual(kind, ready=0):
    make, text = BATCHES[kind]
    originals = Originals(make(), Changes(parse(text)))
    originals.make_ready(ready)
    return VirtualBatch.all_of(originals)


def everything(kind):
    """All virtual examples, made beforehand from the definition: member by member."""
    make, text = BATCHES[kind]
    batch, transforms = make(), parse(text)
    rows = np.arange(len(batch))
    return type(batch).concat([transforms.apply(batch, rows, np.full(len(rows), m)) for m in range(len(transforms))])


def contents(batch):
    if isinstance(batch, Strings):
        return [batch[row] for row in range(len(batch))]
    return [row.tobytes() for row in batch.values]


@pytest.mark.parametrize("ready", [0, 1000, 10**7])
@pytest.mark.parametrize("kind", BATCHES)
def test_what_is_made_on_demand_is_what_would_be_made_beforehand(kind, ready):
    batch = virtual(kind, ready)
    expected = contents(everything(kind))
    assert contents(batch.own()) == expected
    rows = np.random.default_rng(1).integers(0, len(batch), 50)
    assert contents(batch.made(rows)) == [expected[row] for row in rows]
    assert contents(batch.take(rows).slice(3, 9).own()) == [expected[row] for row in rows[3:9]]
    joined = [made for _, made in batch.pieces(rows)]
    assert contents(type(joined[0]).concat(joined)) == [expected[row] for row in rows]


def test_only_costly_changes_are_kept_and_within_the_budget():
    originals = Originals(images(), Changes(parse(IMAGES)))
    one = 7 * 5
    assert (originals.changes.n_early, originals.changes.n_late) == (9, 9)
    for budget, rows in ((0, 0), (9 * one - 1, 0), (9 * one, 1), (5 * 9 * one + 3, 5), (10**9, 12)):
        originals.make_ready(budget)
        assert originals.done == rows
        assert (0 if originals.ready is None else originals.ready.nbytes) <= budget
        originals.ready = None


@pytest.mark.parametrize(
    ("kind", "phi"),
    [
        ("images", Linear()),
        ("windows", WeightedDegree(3).hashed(6).normalized()),
        ("texts", Spectrum(2)),
        ("texts", NGrams((1, 3), bits=8)),
        ("texts", Spectrum(3).indexed("hash_table")),
    ],
)
def test_every_map_sees_virtual_examples_as_it_sees_others(kind, phi):
    batch, plain = virtual(kind, 500), everything(kind)
    inner = phi.resolve(Shape.of(plain))
    on_demand = OnDemand(phi.resolve(Shape.of(batch))).learn(batch)
    inner = inner.learn(plain)
    assert on_demand.check(batch) is None
    assert repr(on_demand) == repr(inner)
    ours, theirs = InMemory(on_demand, batch, dtype=np.float64), InMemory(inner, plain, dtype=np.float64)
    np.testing.assert_allclose(ours.squared_norms(), theirs.squared_norms(), rtol=1e-6)
    rng = np.random.default_rng(2)
    w, coefficients = rng.normal(size=inner.dim), rng.normal(size=len(batch))
    np.testing.assert_allclose(ours.dot([w])[0], theirs.dot([w])[0], rtol=1e-6, atol=1e-9)
    sums = [np.zeros(inner.dim), np.zeros(inner.dim)]
    ours.add([coefficients], sums[:1])
    theirs.add([coefficients], sums[1:])
    np.testing.assert_allclose(*sums, rtol=1e-6, atol=1e-9)
    rows = rng.permutation(len(batch))
    picked = [naive.matrix(block, inner.dim)[at] for block, at, _ in ours.blocks(rows)]
    expected = [naive.matrix(block, inner.dim)[at] for block, at, _ in theirs.blocks(rows)]
    np.testing.assert_allclose(np.concatenate(picked), np.concatenate(expected), rtol=1e-6)


@pytest.mark.parametrize("around", [lambda phi: phi, lambda phi: phi.normalized().hashed(8), lambda phi: phi + phi])
def test_a_change_may_have_more_features_than_its_original(around):
    arcs = [(0, 0, ord("A"), ord(out), 1.0) for out in "ACGT"] + [(0, 0, ord(letter), 0, 1.0) for letter in "CGT"]
    phi = around(Rational(Automaton.from_arcs(arcs, [0]), bits=10))
    originals = Originals(Strings.from_list(["TTTTT", "GGGGG", "ACGTT"]), Changes(parse("reverse_complement()")))
    batch = VirtualBatch.all_of(originals)
    for dtype in (np.float32, np.float64):
        ours, theirs = InMemory(OnDemand(phi), batch, dtype=dtype), InMemory(phi, batch.own(), dtype=dtype)
        for block, _, _ in ours.blocks():
            assert int(block.end[-1]) <= len(block.indices)
        np.testing.assert_allclose(ours.squared_norms(), theirs.squared_norms(), rtol=1e-6)
        w = np.random.default_rng(0).normal(size=phi.dim).astype(dtype)
        np.testing.assert_allclose(ours.dot([w])[0], theirs.dot([w])[0], rtol=1e-4, atol=1e-5)


def shapes(n=40, seed=0):
    """Bright squares against bright crosses."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 60, (n, 8, 8)).astype(np.uint8)
    y = np.where(np.arange(n) % 2, 1, -1)
    X[y > 0, 2:6, 2:6] += 60
    X[y < 0, 3:5, :] += 60
    X[y < 0, :, 3:5] += 60
    return X, y


@pytest.mark.parametrize("solver", ["dcd", "ocas", "stream", "selective_block_minimization"])
def test_every_solver_finds_the_optimum_of_the_stored_examples(solver):
    X, y = shapes()
    transforms = parse("translate(1)")
    plain = transforms.apply(Images(X), np.tile(np.arange(40), 9), np.repeat(np.arange(9), 40)).values
    options = {"C": 1e-5, "tol": 1e-3, "random_state": 0}
    stored = LinearSVM(**options).fit(plain, np.tile(y, 9)).result_
    memory = "4kB" if solver in ("stream", "selective_block_minimization") else None
    found = LinearSVM(solver=solver, memory=memory, **options).fit(Virtual(X, transforms), y).result_
    assert found.gap <= 1e-3
    assert found.primal == pytest.approx(stored.primal, rel=2e-3)


def test_labels_and_weights_of_the_originals_are_those_of_their_changes():
    X, y = shapes(10)
    weight = np.arange(10.0)
    source = Virtual(dotadd.open(X, y, weight), "translate(1)")
    whole = source.load()
    assert whole.y.tolist() == y.tolist() * 9
    assert whole.weight.tolist() == weight.tolist() * 9
    chunks = list(source.chunks(1000))
    assert max(chunk.batch.row_bytes().sum() for chunk in chunks) <= 1000
    assert [chunk.first_row for chunk in chunks] == np.cumsum([0, *map(len, chunks[:-1])]).tolist()
    pairs = sorted(
        (x, int(label)) for chunk in chunks for x, label in zip(contents(chunk.batch.own()), chunk.y, strict=True)
    )
    assert pairs == sorted(zip(contents(whole.batch.own()), whole.y.tolist(), strict=True))
    with pytest.raises(DataError, match="y has 3 entries"):
        LinearSVM().fit(Virtual(X, "translate(1)"), y[:3])


def test_a_model_of_virtual_examples_predicts_examples_as_they_are(tmp_path):
    X, y = shapes()
    svm = LinearSVM(C=1e-5, random_state=0).fit(Virtual(X, "translate(1) * mirror()"), y)
    svm.save(tmp_path / "m")
    model = dotadd.load(tmp_path / "m")
    assert model.training["virtual"] == "translate(1) * mirror()"
    assert model.training["rows"] == 40 * 18
    assert repr(model.phi) == "Linear(n_features=64)"
    np.testing.assert_array_equal(model.decision_function(X), svm.decision_function(X))
    moved = np.pad(X, ((0, 0), (1, 0), (0, 0)), mode="edge")[:, :-1]
    member = parse("translate(1)").names()
    assert (svm.predict(moved) == y).mean() > 0.95
    assert len(member) == 9
    assert svm.decision_function(Virtual(X, "translate(1)")).shape == (360,)


def test_data_that_does_not_fit_says_so_and_what_is_kept_counts():
    X, y = shapes()
    source = Virtual(dotadd.open(X, y), "translate(1) * rotate(5)")
    with pytest.raises(TooLargeError):
        source.load(3000)
    chunk = source.load(40 * 64 + 40 * 8 + 27 * 40 * 8 + 5 * 3 * 64)
    assert chunk.batch.originals.done == 5


def test_a_kernel_machine_counts_virtual_examples_as_what_they_take_once_made(monkeypatch):
    X, y = shapes()
    source = Virtual(dotadd.open(X, y), "translate(1)")
    made = int(source.load().batch.row_bytes().sum())
    for free, enough in ((2 * made, True), (2 * made - 2, False)):
        monkeypatch.setattr("dotadd.estimators.kernel.available", lambda free=free: free)
        if enough:
            assert len(KernelSVM().fit(source).predict(X)) == len(X)
        else:
            with pytest.raises(DotaddError, match="kernel machines need their examples in memory"):
                KernelSVM().fit(source)


def test_other_transformations_are_other_data():
    X, y = shapes()
    marks = {fingerprint(Virtual(dotadd.open(X, y), text)) for text in ("translate(1)", "translate(2)", "mirror()")}
    assert len(marks) == 3
    assert fingerprint(Virtual(dotadd.open(X, y), "mirror()", "1MB")) in marks


def test_kinds_that_cannot_be_changed_so_are_refused():
    with pytest.raises(DotaddError, match=r"translate\(1\) changes images, and the data is strings"):
        Virtual(["ACGT", "ACCT"], "translate(1)").load()
    with pytest.raises(DotaddError, match="changes strings, and the data is dense rows"):
        Virtual(np.zeros((3, 4)), "shift(1)").load()
    with pytest.raises(DotaddError, match=r"translate\(8\).*8 x 8"):
        LinearSVM().fit(Virtual(shapes()[0], "translate(8)"), shapes()[1])


def test_virtual_examples_of_users_own_functions():
    from dotadd.data.transforms import functions

    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, -1)

    def reversed_columns(rows):
        return rows[:, ::-1]

    svm = LinearSVM(random_state=0).fit(Virtual(X, functions(reversed_columns)), y)
    w = svm.coef_[0]
    np.testing.assert_allclose(w, w[::-1], atol=0.05 * np.abs(w).max())
    assert isinstance(Virtual(X, functions(reversed_columns)).load().batch.own(), DenseRows)


def test_a_string_that_cannot_be_read_is_refused_or_left_out_with_all_its_changes():
    strings, y = ["ACGTAC", "ACXTAC", "GGTTAA", "GTTTAA"], [1, -1, -1, 1]
    with pytest.raises(DataError, match="row 1, column 3: letter 'X' is not in the alphabet"):
        LinearSVM(Spectrum(2)).fit(Virtual(dotadd.open(strings, y), "shift(1)"))
    source = Virtual(dotadd.open(strings, y, on_bad_row="skip"), "shift(1)")
    assert LinearSVM(Spectrum(2)).fit(source).model_.training["rows"] == 9
    assert source.skipped.count == 3


def test_a_bad_string_is_told_where_its_changes_are_streamed(tmp_path):
    path = tmp_path / "x.fasta"
    path.write_text(
        "".join(f">{k} label={k % 2}\n{'ACXT' if k == 3 else 'ACGT' if k % 2 else 'GGTT'}AC\n" for k in range(20))
    )
    source = Virtual(dotadd.open(path, label="label"), "shift(1)")
    with pytest.raises(DataError, match=r"x\.fasta:7:3: letter 'X' is not in the alphabet"):
        LinearSVM(Spectrum(2), solver="stream", memory="1kB").fit(source)


def test_complaints_about_virtual_examples_name_the_file_and_the_line(tmp_path):
    for k in range(2):
        (tmp_path / f"{k}.fa").write_text(f">a 0\nACGT{'' if k == 0 else 'N'}\n>b 1\nACGTA\n")
    source = Virtual(dotadd.open(str(tmp_path / "*.fa")), "reverse_complement()")
    for chunk in (source.load(), next(source.chunks()).slice(0, 2), *list(source.chunks())):
        for row in range(len(chunk)):
            assert str(chunk.error(row, "no")).startswith(str(tmp_path))
    chunk = source.load()
    told = [str(chunk.error(row, "no")) for row in range(len(chunk))]
    assert told == [f"{tmp_path}/{k}.fa:{line}: no" for k in range(2) for line in (1, 3)] * 2
