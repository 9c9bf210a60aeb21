"""Lattices from files: each format gives the same examples, in chunks of any size; bad ones are refused with a line."""

import gzip
import re
from collections import defaultdict
from itertools import chain

import naive_automata as naive
import numpy as np
import pytest

import dotadd.automata as automata
from dotadd.automata import Automaton, ngram
from dotadd.automata.draft import Draft, Numbering
from dotadd.automata.symbols import HashedSymbols
from dotadd.cli import run
from dotadd.data.lattices import Lattices
from dotadd.errors import DataError, DotaddError
from dotadd.features.rational import Rational
from dotadd.sources import open as open_source
from dotadd.sources.convert import convert
from dotadd.sources.lattice_rows import LatticeRows

WORDS = HashedSymbols(["a", "b", "c", "the", "cat"])

ARCHIVE = """yes\tone
0 1 the 0.5
0 1 a 1.5
1 2 cat
2 0.25

no\ttwo
0 1 a 3000
0 2 b 3001
1
2

yes\tthree
0 1 <s>
1 2 cat
2 3 </s>
3
"""
SUM = np.exp(-0.5) + np.exp(-1.5)
EXPECTED = [
    {("the", "cat"): np.exp(-0.5) / SUM, ("a", "cat"): np.exp(-1.5) / SUM},
    {("a",): 1 / (1 + np.exp(-1.0)), ("b",): np.exp(-1.0) / (1 + np.exp(-1.0))},
    {("cat",): 1.0},
]


def languages(batch, words=WORDS):
    """The probability of each reading, by its words, of each row."""
    found = []
    for row in range(len(batch)):
        whole = naive.language(batch.automaton(row))
        found.append({tuple(words.name(label) for label in x): w for (x, _), w in whole.items()})
    return found


def approx(rows):
    return [pytest.approx(row) for row in rows]


def loaded(path, **options):
    source = open_source(path, **options)
    return source, source.load()


def test_an_archive_has_labels_lines_and_probabilities(tmp_path):
    (tmp_path / "lattices.txt").write_text(ARCHIVE)
    source, chunk = loaded(tmp_path / "lattices.txt")
    assert isinstance(chunk.batch, Lattices)
    assert chunk.y.tolist() == ["yes", "no", "yes"]
    assert chunk.lines.tolist() == [1, 7, 13]
    assert languages(chunk.batch) == approx(EXPECTED)
    assert set(source.words) == {"the", "a", "b", "cat"}


@pytest.mark.parametrize("nbytes", [1, 30, 60, 100, 1 << 20])
def test_chunks_hold_the_same_rows_whatever_their_size(tmp_path, nbytes):
    for name, text in (("a.txt", ARCHIVE), ("b.txt", ARCHIVE.replace("\n", "\r\n"))):
        (tmp_path / name).write_text(text, newline="")
        chunks = list(open_source(tmp_path / name).chunks(nbytes))
        assert list(chain(*(languages(chunk.batch) for chunk in chunks))) == approx(EXPECTED)
        assert [line for chunk in chunks for line in chunk.lines.tolist()] == [1, 7, 13]
        assert [chunk.first_row for chunk in chunks] == np.cumsum([0, *map(len, chunks)])[:-1].tolist()


def test_formats_of_the_same_lattices_agree(tmp_path):
    texts = {
        "kaldi": "1\tu\n0 1 7 the 0.5,9\n0 1 7 a 1.5,9\n1 2 8 cat\n2 0.25,3\n\n",
        "compact": "1\tu\n0 1 the 0.5,9,1_2\n0 1 a 1.5,9,1_2\n1 2 cat 0,0,\n2 0.25,3,\n\n",
        "real": f"1\tu\n0 1 the {np.exp(-0.5) / SUM}\n0 1 a {np.exp(-1.5) / SUM}\n1 2 cat 1\n2\n",
        "sausage": f"1\tu [ the {np.exp(-0.5) / SUM} a {np.exp(-1.5) / SUM} ] [ cat 1 ]\n",
        "mesh": f"name 1\tu\nnumaligns 2\nalign 0 the {np.exp(-0.5) / SUM} a {np.exp(-1.5) / SUM}\nalign 1 cat 1\n",
        "wcn": f"1\tu\t<s>:0:1 the:1:{np.exp(-0.5) / SUM} a:1:{np.exp(-1.5) / SUM} cat:2:1.0\n",
        "acts": f"<cls>:-1:0:1 <=> the:1:{np.exp(-0.5) / SUM} a:1:{np.exp(-1.5) / SUM} cat:2:1.0 <=> 1\n",
    }
    for name, text in texts.items():
        with gzip.open(tmp_path / f"{name}.gz", "wt") as file:
            file.write(2 * text)
        options = {"semiring": "real"} if name == "real" else {}
        if name == "real":
            with gzip.open(tmp_path / f"{name}.gz", "wt") as file:
                file.write(text + "\n" + text)
        for nbytes in (10, 1 << 20):
            chunks = list(open_source(tmp_path / f"{name}.gz", **options).chunks(nbytes))
            assert list(chain(*(languages(chunk.batch) for chunk in chunks))) == approx(2 * EXPECTED[:1]), name
            assert np.concatenate([chunk.y for chunk in chunks]).tolist() == [1.0, 1.0]


ACTS = """<cls>:-1:0:1 hi:0:0:2\t<=>\t<s>:1:1.0 a:2:0.75 b:3:1.0 </s>:4:1.0\t<=>\tinform-food-thai;bye
<cls>:-1:0:1\t<=>\t<s>:1:1.0 c:2:1.0 </s>:3:1.0\t<=>\t
<cls>:-1:0:1\t<=>\ta:1:1.0\t<=>\tinformal
"""


def test_dialogue_acts_are_labels_and_one_of_them_may_be_asked_for(tmp_path):
    (tmp_path / "acts.txt").write_text(ACTS)
    _, chunk = loaded(tmp_path / "acts.txt")
    assert chunk.y.tolist() == ["inform-food-thai;bye", "null", "informal"]
    assert languages(chunk.batch) == approx([{("a", "b"): 0.75, ("b",): 0.25}, {("c",): 1.0}, {("a",): 1.0}])
    for act, y in (("inform", [1, -1, -1]), ("bye", [1, -1, -1]), ("informal", [-1, -1, 1]), ("null", [-1, 1, -1])):
        assert loaded(tmp_path / "acts.txt", label=act)[1].y.tolist() == y


# The word that follows node 1 is b, or the sentence ends there: the edge (1, 3) has what b leaves.
CELLS = r"""id,text,label
1,"[('<s>', 0, 0.0, 0.0), ('a', -0.5, 0, 0), (""don't"", -0.9327521295671886, 0, 0), ('b', -0.25, 1, 1), ('</s>', 0.0, 0, 0)],[(0, 1), (0, 2), (1, 3), (1, 4), (2, 4), (3, 4)]",yes
2,"[('<s>', 0, 0.0, 0.0), ('i\'d', 0, 0, 0), ('</s>', 0.0, 0, 0)], [(0, 1), (1, 2)]",no
3,the  cat,yes
"""  # noqa: E501


def test_lattices_in_the_cells_of_a_table(tmp_path):
    (tmp_path / "t.csv").write_text(CELLS)
    source, chunk = loaded(tmp_path / "t.csv")
    assert chunk.y.tolist() == ["yes", "no", "yes"]
    assert chunk.lines.tolist() == [2, 3, 4]
    a, b = np.exp(-0.5), np.exp(-0.25)
    assert languages(chunk.batch, source.words) == approx(
        [{("a", "b"): a * b, ("a",): a * (1 - b), ("don't",): 1 - a}, {("i'd",): 1.0}, {("the", "cat"): 1.0}]
    )


def test_sentences_of_a_table_are_chains_of_words_if_lattices_are_asked_for(tmp_path):
    (tmp_path / "t.csv").write_text("id,text,label\n1,the cat,1\n2,a,0\n")
    _, chunk = loaded(tmp_path / "t.csv", format="lattices")
    assert languages(chunk.batch) == approx([{("the", "cat"): 1.0}, {("a",): 1.0}])
    assert chunk.y.tolist() == [1.0, 0.0]
    (tmp_path / "t.tsv").write_text("first\tsecond\tlabel\nthe cat\ta\t1\n")
    assert languages(loaded(tmp_path / "t.tsv", format="lattices", column="second")[1].batch) == approx([{("a",): 1.0}])


def test_a_word_has_one_number_in_all_files_and_at_all_times(tmp_path):
    (tmp_path / "one.txt").write_text("u\n0 1 cat\n0 1 dog 1\n1\n")
    (tmp_path / "two.txt").write_text("u\n0 1 fish\n0 1 cat 1\n1\n")
    one, two = (set(loaded(tmp_path / name)[1].batch.labels.tolist()) for name in ("one.txt", "two.txt"))
    assert one & two == {HashedSymbols().number("cat")}
    assert len(one | two) == 3


def test_a_symbol_table_names_numbers_and_refuses_what_it_does_not_have(tmp_path):
    (tmp_path / "words").write_text("<eps> 0\nthe 1\ncat 2\n")
    (tmp_path / "numbers.txt").write_text("u\n0 1 1\n1 2 0\n2 3 2\n3\n")
    (tmp_path / "names.txt").write_text("u\n0 1 the\n1 3 cat\n3\n\nv\n0 1 dog\n1\n")
    _, chunk = loaded(tmp_path / "numbers.txt", symbols=tmp_path / "words")
    assert languages(chunk.batch) == approx([{("the", "cat"): 1.0}])
    with pytest.raises(DataError, match=re.escape("names.txt:7: the symbol 'dog' is not in the symbol table")):
        loaded(tmp_path / "names.txt", symbols=tmp_path / "words")
    source, chunk = loaded(tmp_path / "names.txt", symbols=tmp_path / "words", on_bad_row="skip")
    assert languages(chunk.batch) == approx([{("the", "cat"): 1.0}])
    assert source.skipped.count == 1
    (tmp_path / "numbers.txt").write_text("u\n0 1 7\n1\n")
    with pytest.raises(DataError, match=re.escape("numbers.txt:2: no symbol of the table has the number 7")):
        loaded(tmp_path / "numbers.txt", symbols=tmp_path / "words")


def test_zero_is_the_empty_word_among_numbers_and_a_word_among_words(tmp_path):
    (tmp_path / "a.txt").write_text("u\n0 1 5\n1 2 0\n2\n\nv\n0 1 zero\n1 2 0\n2\n")
    source, chunk = loaded(tmp_path / "a.txt")
    assert languages(chunk.batch, source.words) == approx([{("5",): 1.0}, {("zero", "0"): 1.0}])


def test_labels_stand_in_a_second_file(tmp_path):
    (tmp_path / "a.txt").write_text(re.sub(r"(?m)^\w+\t", "", ARCHIVE))
    (tmp_path / "labels").write_text("three\t1\none\t-1\ntwo\t1\n")
    assert open_source(tmp_path / "a.txt").load().y is None
    assert loaded(tmp_path / "a.txt", labels=tmp_path / "labels")[1].y.tolist() == [-1.0, 1.0, 1.0]
    (tmp_path / "labels").write_text("three\t1\none\t-1\n")
    with pytest.raises(DataError, match=r"a\.txt:7: 'two' has no label in .*labels"):
        loaded(tmp_path / "a.txt", labels=tmp_path / "labels")


def random_draft(rng, costs):
    a = naive.random_automaton(rng, 6, 10, 3, acceptor=True, values=(0.25, 0.5, 3.0))
    draft = Draft("a", 1, costs, start=int(rng.permutation(6)[0] if rng.random() < 0.2 else 0))
    draft.outputs = draft.inputs
    for source, target, i, _, w in naive.arcs_of(a):
        draft.sources.append(source)
        draft.targets.append(target)
        draft.inputs.append("<eps>" if i == 0 else "xabc"[i])
        draft.weights.append(-np.log(w) if costs else 0.0 if rng.random() < 0.1 else w)
        draft.lines.append(1)
    draft.finals = {q: (-np.log(w) if w else np.inf) if costs else w for q, w in enumerate(a.finals.tolist())}
    return draft


@pytest.mark.parametrize("seed", range(20))
def test_rows_put_together_are_the_automata_made_one_by_one(seed):
    rng = np.random.default_rng(seed)
    numbering, rows, expected = Numbering(HashedSymbols()), LatticeRows(), []
    for _ in range(12):
        draft = random_draft(rng, bool(rng.random() < 0.5))
        rows.append(draft, numbering)
        try:
            expected.append(naive.language(draft.automaton(numbering, normalize=True)))
        except DataError:
            expected.append({})
    batch, complaints = rows.batch(numbering.symbols)
    batch.checked()
    for row, whole in enumerate(expected):
        assert (row in complaints) == (not any(whole.values()))
        assert naive.same(naive.language(batch.automaton(row)), whole)
        if row not in complaints:
            one = Lattices.from_automata([batch.automaton(row)])  # nothing is left that could be left out
            assert len(one.finals) == batch.state_offsets[row + 1] - batch.state_offsets[row]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\tu\n0 1 a\n1 2 b\n2 0 c\n2\n", "a.txt:1: the lattice has a cycle through state 0"),
        ("1\tu\n0 1 a\n1\n\n0\tv\n0 1 b\n1 1 a\n1\n", "a.txt:5: the lattice has a cycle through state 1"),
        ("1\tu\n0 1 a\n1 2 b\n1\n", "a.txt:3: an arc leads to state 2, which is missing"),
        ("1\tu\n0 1 a 0.5\n1 2 b x\n2\n", "a.txt:3: the weight 'x' is not a number"),
        ("1\tu\n0 1 a 2\n1 2 b 1\n2 3 b x\n3\n", "a.txt:4: the weight 'x' is not a number"),
        ("1\tu\n0 1 a 0,1,\n1 0,x,\n", "a.txt:3: the weight '0,x,' is not a number"),
        ("1\tu\n0 1 a\n1 Infinity\n", "a.txt:1: no path leads from the start to a final state"),
        ("1\tu\n0 1 a\n1\n\nv\n0 1 a\n1\n", "a.txt:5: the label is missing"),
        ("1\tu [ a 0.5 b -0.5 ]\n", "a.txt:1: the probability -0.5 is not from 0 to 1"),
        ("1\tu\ta:1:1.0\n0\tv\ta:x:1\n", "a.txt:2: 'a:x:1' is not word:place:probability"),
        ("1\tu\n0 x a\n1\n", "a.txt:2: 'x' is not the number of a state"),
    ],
)
def test_bad_lattices_are_refused_with_their_line(tmp_path, text, said):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(DataError, match=re.escape(said)):
        loaded(tmp_path / "a.txt", format="lattices")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("[('<s>', 0), ('a', 0), ('</s>', 0)],[(0, 1), (1, 3)]", "the edge (1, 3) leads to node 3, which is missing"),
        ("[('<s>', 0), ('a', 0), ('</s>', 0)],[(0, 1), (0, 2)]", "an arc leads to state 1, which is missing"),
        ("[('<s>', 0), ('a', 0), ('b', 0), ('</s>', 0)],[(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]", "node 0 sum to 2"),
        ("[('<s>', 0), ('a', -1), ('</s>', 0)],[(0, 1), (1, 1), (1, 2)]", "has a cycle through state 1"),
        ("[('<s>', 0), ('a', x), ('</s>', 0)],[(0, 1), (1, 2)]", "'x' is not a number"),
        ("[('<s>', 0), ('a', 1), ('</s>', 0)],[(0, 1), (1, 2)]", "1 is not the logarithm of a probability"),
        ("[('a', 0), ('</s>', 0)],[(0, 1)]", "the nodes begin with <s> and end with </s>, and not a and </s>"),
        ("[('<s>', 0), ('</s>', 0)]", "expected a list of edges after the nodes"),
        ("[('<s>', 0), ('</s>', 0)],[(0, 1)", "expected a comma or a bracket"),
        ("[('<s>', 0), ('</s>', 0)],[(0, 1)] or", "expected nothing after the edges"),
        ("[('<s>', 0), (__import__('os'), 0)],[(0, 1)]", "expected ('word', log p, ...), but there is \"(__import__"),
    ],
)
def test_bad_cells_are_refused_with_their_line(tmp_path, cell, said):
    (tmp_path / "t.csv").write_text(f'text,label\na,1\n"{cell}",0\n')
    with pytest.raises(DataError, match=re.escape("t.csv:3: ") + ".*" + re.escape(said)):
        loaded(tmp_path / "t.csv", format="lattices")
    assert open_source(tmp_path / "t.csv", format="lattices", on_bad_row="skip").load().y.tolist() == [1.0]


def test_options_without_meaning_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text(ARCHIVE)
    (tmp_path / "t.csv").write_text(CELLS)
    (tmp_path / "many.csv").write_text("x,y\na,b\n")
    for path, options, said in (
        ("a.txt", {"column": "x"}, "column= is for tables"),
        ("a.txt", {"label": "x"}, "label= is for tables and dialogue acts"),
        ("t.csv", {"labels": "x"}, "labels= has no meaning for tables"),
        ("t.csv", {"column": "id"}, "column 'id' holds numbers"),
        ("many.csv", {"format": "lattices"}, "which column holds the lattices"),
        ("a.txt", {"semiring": "tropical"}, "semiring has to be 'log' or 'real'"),
        ("a.txt", {"zero_based": True}, "zero_based= has no meaning for lattices files"),
    ):
        with pytest.raises(DotaddError, match=said):
            loaded(tmp_path / path, **options)


def test_lattices_are_converted_to_arrow_and_come_back(tmp_path):
    (tmp_path / "a.txt").write_text(ARCHIVE)
    convert(open_source(tmp_path / "a.txt"), tmp_path / "a.arrow")
    chunk = open_source(tmp_path / "a.arrow").load()
    assert languages(chunk.batch) == approx(EXPECTED)
    assert chunk.y.tolist() == ["yes", "no", "yes"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Sentences that say `good` or `bad` in one of two readings."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = defaultdict(list)
    for k in range(60):
        word = "good" if k % 2 else "bad"
        noise = rng.choice(["a", "b", "c", "the"], 4)
        arcs = [f"{q} {q + 1} {w} {rng.exponential():.3f}" for q, w in enumerate([*noise[:2], word, *noise[2:]])]
        arcs.append(f"1 2 {rng.choice(['x', 'y'])} {rng.exponential():.3f}")
        lines["train.txt" if k < 40 else "test.txt"] += [f"{k % 2}\tu{k}", *arcs, "5", ""]
    for name, text in lines.items():
        (tmp_path / name).write_text("\n".join(text))
    return tmp_path


def test_the_commands_read_lattices(folder, capsys):
    assert run(["train", "train.txt", "--features", "Rational(ngram(1))", "-o", "m", "--quiet"]) == 0
    assert run(["predict", "m", "test.txt"]) == 0
    labels = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert labels == [str(k % 2) for k in range(40, 60)]
    assert run(["evaluate", "m", "test.txt"]) == 0
    assert "accuracy" in capsys.readouterr().out
    assert run(["convert", "test.txt", "test.arrow"]) == 0
    capsys.readouterr()
    assert run(["predict", "m", "test.arrow"]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == labels
    (folder / "bad.txt").write_text("1\tu\n0 1 a\n1 0 b\n1\n")
    assert run(["predict", "m", "bad.txt"]) == 2
    assert "bad.txt:1: the lattice has a cycle through state 0" in capsys.readouterr().err


def test_a_posterior_of_an_automaton_file_is_that_of_the_source(tmp_path):
    (tmp_path / "a.txt").write_text(ARCHIVE)
    _, chunk = loaded(tmp_path / "a.txt")
    for row, (_, whole) in enumerate(automata.read_many(tmp_path / "a.txt", symbols=HashedSymbols(), normalize=True)):
        silent = [label if whole.symbols.name(int(label)) not in ("<s>", "</s>") else 0 for label in whole.ilabels]
        spoken = Automaton.from_arrays(
            whole.sources, whole.targets, np.array(silent), np.array(silent), whole.weights, whole.finals, whole.start
        )
        assert naive.same(naive.language(spoken), naive.language(chunk.batch.automaton(row)))


def test_inspection_shows_the_words_of_a_file(tmp_path):
    path = tmp_path / "two.txt"
    path.write_text("yes\tu1\n0 1 hello 0.1\n0 1 hallo 2.3\n1 2 world 0\n2\n\nno\tu2\n0 1 bye 0\n1 2 bob 1.0\n2\n")
    batch = open_source(path).load().batch
    phi = Rational(ngram(2))
    names, _ = phi.origins(batch, np.array([0, 0, 1]), np.array([0, 1, 0]))
    assert {bytes(name) for name in names.text} == {b"hello world", b"hallo world", b"bye bob"}
    again = Lattices.concat([batch.take(np.array([1])), batch.slice(0, 1)])
    assert bytes(phi.origins(again, np.array([0]), np.array([0]))[0].text[0]) == b"bye bob", "other batches know them"
