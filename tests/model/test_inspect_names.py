"""Names of slots: what a map says of its non-zeros is what it writes, and one pass counts what fell into a slot."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse

from dotadd import DotaddError, LinearSVM, parse, strongest_features
from dotadd.cli import run
from dotadd.core.block import Block
from dotadd.data.batches import DenseRows, SparseRows, Strings
from dotadd.features.base import FeatureMap, Shape
from dotadd.model import naming as module
from dotadd.model.naming import Name

STRINGS = ["ACGTTGCA", "acgnTTgCAgt", "NNAN", "", "TTTTTTTTTTT", "GATTACA"]
STRING_MAPS = [
    "Spectrum(3)",
    "Spectrum(2, span=(2, -1)).hashed(5)",
    "WeightedSpectrum(3, weights=(1, 0, 2))",
    "WeightedSpectrum(4).hashed(9)",
    "WeightedDegree(3, span=(1, None))",
    "WeightedDegree(5, weights=(0, 1, 1, 1, 0.5)).hashed(5)",
    "NGrams((2, 3), bits=9)",
    "NGrams((2, 3), bits=9, unicode=False)",
    "NGrams((1, 3), bits=9, unit='characters')",
    "WeightedDegree(2, alphabet='ACGTacgtn')",
    "0.5 * WeightedSpectrum(2) + (Spectrum(1) + 2.0 * WeightedDegree(4).hashed(4)).normalized()",
    "(Spectrum(2) + WeightedDegree(2)).hashed(7) + 0.0 * Spectrum(1) + Spectrum(1)",
]
TEXT_MAPS = [
    "WordNGrams((1, 2), bits=8)",
    "WordNGrams((1, 2), bits=8, binary=True, tokens='identifiers', stop='english')",
    "WordNGrams((1, 3), bits=20, accents='strip', tokens='urls', shortest_word=2)",
    "WordNGrams((1, 2), bits=20, stop=('the', 'CAT'), lowercase=False)",
    "BagOfWords(unicode=False)",
    "NGrams((1, 6), within='words')",
    "NGrams((4, 6), within='words', unit='characters', accents='strip')",
]
TEXTS = ["The Cat, the cät parseHTTP_Header2 été", "", "x%20y Straße a b the", "ÀÉ 我们喜欢 \udcff", "Cat"]


def filled(phi: FeatureMap, batch) -> list[tuple[np.ndarray, np.ndarray]]:
    """Slots and values of each row, in the order in which they are written."""
    bound = phi.bound(batch)
    bounds = np.full(len(batch), bound) if np.ndim(bound) == 0 else bound
    block = Block.scratch(np.asarray(bounds), phi.dim, dtype=np.float64)
    phi.fill(batch, np.arange(len(batch)), block)
    spans = zip(block.start, block.end, strict=True)
    return [(block.indices[a:b].astype(np.int64), block.values[a:b]) for a, b in spans]


def all_of(counts: list[int], more: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(row, nth) of every non-zero, and of `more` beyond the end of each row."""
    rows = np.repeat(np.arange(len(counts)), np.array(counts) + more)
    return rows, np.concatenate([np.arange(count + more) for count in counts])


def leaves(phi: FeatureMap) -> list[FeatureMap]:
    parts = getattr(phi, "parts", None) or ([phi.phi] if hasattr(phi, "phi") else None)
    return [phi] if parts is None else [leaf for part in parts for leaf in leaves(part)]


@pytest.mark.parametrize("expression", STRING_MAPS)
def test_a_named_feature_alone_in_its_place_falls_into_the_slot_that_fill_wrote(expression):
    batch = Strings.from_list(STRINGS)
    phi = parse(expression).resolve(Shape.of(batch))
    written = filled(phi, batch)
    rows, nth = all_of([len(slots) for slots, _ in written])
    names, beyond = phi.origins(batch, rows, nth)
    assert (beyond == -1).all()
    assert all(text for text in names.text)
    # the k-mer alone among letters that nobody knows, at its place or where the map looks for it
    alone = []
    for row, position, text in zip(rows, names.position, names.text, strict=True):
        z = STRINGS[row]
        places = [position] if position >= 0 else range(len(z))
        found = [at for at in places if z[at : at + len(text)].upper() == text.decode().upper()]
        assert found, (expression, row, position, text)
        alone.append((len(z), found, text))
    for (row, n), (length, places, text) in zip(zip(rows, nth, strict=True), alone, strict=True):
        slots = set()
        foreign = "!" * length
        for at in places:
            z = foreign[:at] + text.decode() + foreign[at + len(text) :]
            slots |= set(filled(phi, Strings.from_list([z]))[0][0].tolist())
        assert int(written[row][0][n]) in slots


@pytest.mark.parametrize("expression", [*STRING_MAPS, *TEXT_MAPS])
def test_beyond_counts_from_the_end_of_a_row(expression):
    batch = Strings.from_list(STRINGS)
    phi = parse(expression).resolve(Shape.of(batch))
    counts = [len(slots) for slots, _ in filled(phi, batch)]
    rows, nth = all_of(counts, more=3)
    _, beyond = phi.origins(batch, rows, nth)
    expected = nth - np.array(counts)[rows]
    assert np.array_equal(beyond, np.where(expected < 0, -1, expected))


@pytest.mark.parametrize("expression", TEXT_MAPS)
def test_a_named_run_of_text_falls_into_its_slot_again(expression):
    """The name alone is a text that has this feature; blanks around words come back by themselves."""
    phi = parse(expression)
    batch = Strings.from_list([text.encode("utf-8", "surrogateescape") for text in TEXTS])
    written = filled(phi, batch)
    rows, nth = all_of([len(slots) for slots, _ in written])
    names, beyond = phi.origins(batch, rows, nth)
    assert (beyond == -1).all()
    texts = [name.strip() if "within" in expression else name for name in names.text]
    again = [set(slots.tolist()) for slots, _ in filled(phi, Strings.from_list(texts))]
    for row, n, name, slots in zip(rows, nth, names.text, again, strict=True):
        assert name == b" " or int(written[row][0][n]) in slots, name


def test_parts_of_a_stack_are_told_apart_by_their_expressions():
    batch = Strings.from_list(["ACGT"])
    phi = parse("(Spectrum(1, span=(0, 2)) + Spectrum(1, span=(2, 4))).normalized() + 2.0 * Spectrum(3)")
    names, _ = phi.origins(batch, np.zeros(6, np.int64), np.arange(6))
    left, right, three = (repr(leaf) for leaf in leaves(phi))
    assert names.part.tolist() == [left, left, right, right, three, three]
    assert names.text.tolist() == [b"A", b"C", b"G", b"T", b"ACG", b"CGT"]


@pytest.mark.parametrize("expression", STRING_MAPS)
def test_a_slot_is_inverted_to_what_was_written_into_it_or_not_at_all(expression):
    batch = Strings.from_list(STRINGS)
    phi = parse(expression).resolve(Shape.of(batch))
    written = filled(phi, batch)
    rows, nth = all_of([len(slots) for slots, _ in written])
    slots = np.concatenate([slots for slots, _ in written])
    names, _ = phi.origins(batch, rows, nth)
    inverted = phi.invert(slots)
    told = np.array([len(text) > 0 for text in inverted.text])
    assert inverted.text[told].tolist() == names.text[told].tolist()
    assert inverted.position[told].tolist() == names.position[told].tolist()
    if "hashed" not in expression and "NGrams" not in expression:
        assert told.all()


def test_every_slot_of_the_counted_tables_beside_hashed_ones_has_its_own_name():
    phi = parse("WeightedDegree(4).hashed(4)").resolve(Shape("strings", length=5))
    inverted = phi.invert(np.arange(phi.dim))
    pairs = [pair for pair in zip(inverted.position, inverted.text, strict=True) if pair[1]]
    assert len(set(pairs)) == len(pairs) == 5 * (4 + 16)


def test_words_are_named_in_the_order_they_are_written():
    texts = ["to be, or not To be", "", "one"]
    batch = Strings.from_list(texts)
    phi = parse("WordNGrams((1, 2), bits=12)")
    rows, nth = all_of([len(slots) for slots, _ in filled(phi, batch)])
    names, _ = phi.origins(batch, rows, nth)
    for row, n, text in zip(rows, nth, names.text, strict=True):
        assert filled(phi, batch)[row][0][n] in filled(phi, Strings.from_list([text]))[0][0]
    assert b"not to" in names.text[rows == 0]
    binary = parse("BagOfWords(binary=True)")
    names, beyond = binary.origins(batch, np.zeros(5, np.int64), np.arange(5))
    assert names.text.tolist()[:4] == [b"to", b"be", b"or", b"not"]
    assert beyond.tolist() == [-1] * 4 + [0]


def test_columns_of_vectors_are_their_own_names_also_when_hashed():
    dense = np.array([[0.0, 1.5, 2.0], [3.0, 0.0, 0.0]])
    sparse = scipy.sparse.csr_array(dense)
    rows = SparseRows(sparse.indptr, sparse.indices, sparse.data, 3)
    for phi in (parse("Linear(n_features=3)"), parse("Linear().hashed(4)")):
        names, beyond = phi.origins(rows, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
        assert names.position.tolist() == [1, 2, 0, -1]
        assert beyond.tolist() == [-1, -1, -1, 0]
        names, _ = phi.origins(DenseRows(dense), np.array([1, 1]), np.array([0, 2]))
        assert names.position.tolist() == [0, 2]
    assert parse("Linear(n_features=3)").invert(np.array([2, 0])).position.tolist() == [2, 0]


def test_a_map_that_says_nothing_leaves_its_slots_unnamed_and_its_neighbours_named():
    class Length(FeatureMap):
        takes, dim = (Strings,), 1

        def bound(self, batch):
            return 1

        def fill(self, batch, rows, block):
            for j, row in enumerate(rows):
                if len(batch[row]):
                    block.append(j, np.zeros(1), len(batch[row]))

    phi = Length() + parse("Spectrum(1)")
    names, beyond = phi.origins(Strings.from_list(["", "AC"]), np.array([1, 1, 0]), np.array([0, 1, 0]))
    assert names.text.tolist() == [b"", b"A", b""]
    assert beyond.tolist() == [-1, -1, 0]


def naive_counts(phi, strings, y, slot):
    """Names in a slot and how often each occurs in each class, by asking for every non-zero of every row."""
    batch = Strings.from_list(strings)
    counts: dict[Name, list[int]] = {}
    for row, (slots, _) in enumerate(filled(phi, batch)):
        for n in np.flatnonzero(slots == slot):
            names, _ = phi.origins(batch, np.array([row]), np.array([n]))
            position = int(names.position[0])
            name = Name(names.part[0], None if position < 0 else position, names.text[0].decode())
            counts.setdefault(name, [0, 0, 0])[y[row]] += 1
    return counts


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 300)
    strings = ["".join(rng.choice(list("ACGT"), 12)) for _ in y]
    return [z[:4] + "GATTA" + z[9:] if label else z for z, label in zip(strings, y, strict=True)], y


@pytest.fixture(scope="module")
def model(data):
    return LinearSVM(parse("WeightedSpectrum(2) + WeightedDegree(5).hashed(6)"), random_state=0).fit(*data).model_


def test_one_pass_counts_every_name_in_every_class(model, data):
    strings, y = data
    (features,) = strongest_features(model, (Strings.from_list(strings)), largest=15)
    assert [(f.slot, f.weight) for f in features] == model.inspect(largest=15)["largest"][0]
    from dotadd.sources import open as open_source

    (labelled,) = strongest_features(model, open_source(strings, y), largest=15)
    for plain, feature in zip(features, labelled, strict=True):
        wanted = naive_counts(model.phi, strings, y, feature.slot)
        assert dict(feature.names) == wanted
        assert [sum(times) for _, times in feature.names] == sorted((sum(c) for c in wanted.values()), reverse=True)
        assert {name: times[2] for name, times in plain.names} == {name: sum(c) for name, c in wanted.items()}
        values = [v[s == feature.slot] for s, v in filled(model.phi, Strings.from_list(strings))]
        assert feature.value == pytest.approx(np.concatenate(values).mean(), rel=1e-6)
    assert any("GATTA".endswith(f.names[0][0].text) or "GATTA".startswith(f.names[0][0].text) for f in labelled)


def test_counted_slots_of_maps_that_do_not_name_their_non_zeros_are_counted_too():
    strings = ["ACGA", "TCGT", "AAAC", "CGCG"]
    y = np.array([1, 0, 1, 0])
    model = LinearSVM(parse('Spectrum(2, strands="both")'), random_state=0).fit(strings, y).model_
    (features,) = strongest_features(model, strings, largest=16)
    found = {name.text: sum(times) for feature in features for name, times in feature.names}
    pairs = [z[i : i + 2] for z in strings for i in range(3)]
    for text, count in found.items():
        mirrored = text[::-1].translate(str.maketrans("ACGT", "TGCA"))
        assert count == sum(u in (text, mirrored) for u in pairs)
    assert sum(found.values()) == 12


def test_only_the_first_rows_are_read(model, data):
    strings, _ = data
    some = strongest_features(model, strings[:40], largest=5)
    done = []
    assert strongest_features(model, strings, largest=5, rows=40, on_progress=done.append) == some
    assert done[-1] == 40
    with pytest.raises(DotaddError, match="rows=0"):
        strongest_features(model, strings, rows=0)


def test_rare_names_are_let_go_where_there_are_too_many(model, data, monkeypatch):
    strings, _ = data
    (whole,) = strongest_features(model, strings, largest=15)
    monkeypatch.setattr(module, "NAMES_KEPT", 10)
    monkeypatch.setattr(module, "FEWEST_KEPT", 1)
    (few,) = strongest_features(model, strings, largest=15)
    for kept, feature in zip(few, whole, strict=True):
        assert kept.names == feature.names[:1]
        assert kept.others == len(feature.names[1:])


def test_several_classes_share_one_pass():
    strings = ["AAAA", "CCCC", "GGGG"] * 5
    y = np.array(["a", "c", "g"] * 5)
    model = LinearSVM(parse("Spectrum(2)"), random_state=0).fit(strings, y).model_
    for row, text in zip(strongest_features(model, strings, largest=1), ("AA", "CC", "GG"), strict=True):
        ((feature),) = row
        assert feature.weight > 0
        assert feature.names == [(Name("Spectrum(2)", None, text), [0, 0, 0, 15])]


def test_the_command_names_slots_with_and_without_data(model, data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    strings, y = data
    model.save("m.dotadd")
    lines = [f"{z},{'[b]yes' if label else '[b]no'}" for z, label in zip(strings, y, strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(["seq,label", *lines, "ACGN,[b]no"]) + "\n")
    assert run(["inspect", "m.dotadd", "--data", "x.csv", "--largest", "12"]) == 2
    assert "x.csv:302:4" in capsys.readouterr().err
    assert run(["inspect", "m.dotadd", "--data", "x.csv", "--largest", "12", "--on-bad-row", "skip", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "left out 1 bad rows" in err
    (features,) = json.loads(out)["strongest"]
    (named,) = strongest_features(model, strings, largest=12)
    for told, feature in zip(features, named, strict=True):
        name, times = feature.names[0]
        assert told["slot"] == feature.slot
        assert told["names"][0]["text"] == name.text
        assert told["names"][0]["position"] == (None if name.position is None else name.position + 1)
        assert sum(told["names"][0]["occurrences"].values()) == sum(times)
        assert len(told["names"]) + told["other_names"] == len(feature.names)
    assert run(["inspect", "m.dotadd", "--data", "x.csv", "--largest", "12", "--rows", "200"]) == 0
    shown = capsys.readouterr().out
    assert "positions count from 1" in shown
    assert "WeightedDegree(5, length=12).hashed(6)" in shown
    assert run(["inspect", "m.dotadd", "--largest", "12"]) == 0
    assert "--data FILE" in capsys.readouterr().out


def test_a_model_of_columns_shows_their_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("height,[red]width,label\n" + "2,0,1\n0,3,0\n" * 5)
    assert run(["train", "x.csv", "-o", "m", "-q"]) == 0
    for data in (["--data", "x.csv"], []):
        assert run(["inspect", "m", *data]) == 0
        shown = capsys.readouterr().out
        assert "[red]width" in shown
        assert "height" in shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--rows 5", "without --data"),
        ("--label y", "without --data"),
        ("--order 2", "without --poim"),
        ("--data missing.arrow", "missing.arrow"),
        ("--data x.svm", "strings"),
        ("--data x.txt --rows 0", "--rows: '0' is not a whole number of at least 1"),
    ],
)
def test_options_that_cannot_act_are_refused(model, arguments, complaint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model.save("m.dotadd")
    (tmp_path / "x.svm").write_text("1 1:1\n0 2:1\n")
    (tmp_path / "x.txt").write_text("1 1:1\n0 2:1\n")
    assert run(["inspect", "m.dotadd", *arguments.split()]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1


def test_columns_are_looked_for_by_name_wherever_they_stand(tmp_path, monkeypatch, capsys):
    """A pass over the same rows with the columns in another order, and others among them, tells the same."""
    monkeypatch.chdir(tmp_path)
    for name, order in (("train.csv", ("a", "b", "c", "label")), ("other.csv", ("c", "label", "more", "b", "a"))):
        rows = [{"a": k % 3, "b": k % 5, "c": k % 7, "more": 9, "label": "yx"[k % 3 > 0]} for k in range(30)]
        lines = [",".join(str(row[column]) for column in order) for row in rows]
        (tmp_path / name).write_text("\n".join([",".join(order), *lines]) + "\n")
    assert run(["train", "train.csv", "-o", "m", "-q"]) == 0
    told = []
    for data in ("train.csv", "other.csv"):
        assert run(f"inspect m --data {data} --largest 3".split()) == 0
        told.append([line.split()[:5] for line in capsys.readouterr().out.splitlines() if line.split()[:1] > ["a"]])
        assert run(f"explain m {data} --rows 2".split()) == 0
        told[-1].append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert all(f" {name} " in told[0][-1] for name in "abc")
    text = "text,label\ncheap pills,spam\nsee you,ham\n"
    (tmp_path / "mails.csv").write_text(text)
    (tmp_path / "wide.csv").write_text("more,label,text\nx,spam,cheap pills\ny,ham,see you\n")
    assert run(["train", "mails.csv", "--column", "text", "--features", "WordNGrams(1,bits=9)", "-o", "t", "-q"]) == 0
    for data in ("mails.csv", "wide.csv"):
        assert run(f"inspect t --data {data} --json".split()) == 0
        told.append(json.loads(capsys.readouterr().out)["strongest"])
    assert told[2] == told[3]
    assert {name["text"] for feature in told[2][0] for name in feature["names"]} == {"cheap", "pills", "see", "you"}
