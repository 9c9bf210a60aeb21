"""Files of automata: read as they were written, in every format, and bad ones refused in one line."""

import bz2
import gzip
import lzma
import re

import naive_automata as naive
import numpy as np
import pytest

import dotadd.automata as automata
from dotadd.automata import Automaton, SymbolTable, read, read_many, write, write_many
from dotadd.automata.symbols import HashedSymbols
from dotadd.errors import AutomatonError, DataError

WORDS = SymbolTable(["cat", 'q"\\', "ä"])
POSITIVE = (0.25, 0.5, 1.0, 3.0)


def random(seed, **options):
    a = naive.random_automaton(np.random.default_rng(seed), 6, 12, 3, **{"values": POSITIVE, **options})
    return Automaton(*a.arrays, a.start, WORDS)


def same(a, b):
    """The same arcs between the same states, up to the rounding of logarithms."""
    return (
        all(np.array_equal(x, y) for x, y in zip(a.arrays[:4], b.arrays[:4], strict=True))
        and np.allclose(a.weights, b.weights, rtol=1e-14, atol=0)
        and np.allclose(a.finals, b.finals, rtol=1e-14, atol=0)
        and a.start == b.start
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["a.txt", "a.fst", "a.ark"])
@pytest.mark.parametrize("symbols", [WORDS, None])
def test_an_automaton_is_read_as_it_was_written(tmp_path, seed, name, symbols):
    a = random(seed, acyclic=seed % 2 == 0, acceptor=seed % 3 == 0)
    a = Automaton(*a.arrays, a.start, symbols)
    write(a, tmp_path / name)
    b = read(tmp_path / name, symbols=None if name == "a.fst" else symbols)
    assert same(a, b)
    assert b.symbols == symbols


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", ["a.txt", "a.fst", "a.ark"])
def test_weights_of_either_sign_are_kept_by_the_real_semiring(tmp_path, seed, name):
    a = random(seed, values=(-2.0, 0.1, 3.0), acyclic=False)
    write(a, tmp_path / name, semiring="real")
    b = read(tmp_path / name, semiring="real", symbols=WORDS)
    assert all(np.array_equal(x, y) for x, y in zip(a.arrays, b.arrays, strict=True))


def test_a_negative_weight_has_no_cost(tmp_path):
    a = Automaton.from_arcs([(0, 1, 1, -0.5)], [1])
    for name in ("a.txt", "a.fst", "a.ark"):
        with pytest.raises(AutomatonError, match=r"the weight -0\.5 is negative and has no cost"):
            write(a, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_start_that_is_not_state_0_and_dead_ends_come_back(tmp_path):
    a = Automaton.from_arcs([(2, 0, 1, 0.5), (2, 1, 2, 0.25)], {0: 0.5}, start=2)
    for name in ("a.txt", "a.fst", "a.ark"):
        write(a, tmp_path / name)
        assert same(a, read(tmp_path / name))


def test_states_with_gaps_are_counted_anew_in_their_order(tmp_path):
    (tmp_path / "a").write_text("7 100 1 1\n100 3 2 2\n3\n")
    a = read(tmp_path / "a")
    assert (a.n_states, a.start) == (3, 1)
    assert a.weight([1, 2], [1, 2]) == 1.0


@pytest.mark.parametrize("opener", [gzip.open, bz2.open, lzma.open])
@pytest.mark.parametrize("name", ["a.txt", "a.fst"])
def test_compressed_files_are_read_by_their_contents_and_written_by_their_names(tmp_path, opener, name):
    a = random(3)
    write(a, tmp_path / name)
    with opener(tmp_path / "other", "wb") as file:
        file.write((tmp_path / name).read_bytes())
    assert same(a, read(tmp_path / "other", symbols=WORDS))
    ending = {gzip.open: ".gz", bz2.open: ".bz2", lzma.open: ".xz"}[opener]
    write(a, tmp_path / (name + ending))
    with opener(tmp_path / (name + ending), "rb") as file:
        assert file.read() == (tmp_path / name).read_bytes()


@pytest.mark.parametrize(
    ("text", "arcs"),
    [
        ("0 1 5\n1 2 6 0.5\n2\n", [(5, 5, 1.0), (6, 6, np.exp(-0.5))]),  # an acceptor
        ("0 1 5 7\n1 2 6 8\n2\n", [(5, 7, 1.0), (6, 8, 1.0)]),  # whole numbers are labels
        ("0 1 5 7\n1 2 6 8 0.5\n2\n", [(5, 7, 1.0), (6, 8, np.exp(-0.5))]),
        ("0 1 5 0.25\n1 2 6 1\n2\n", [(5, 5, np.exp(-0.25)), (6, 6, np.exp(-1.0))]),
        ("0\t1\t5\tInfinity\n1\t2\t6\t-2\n2\t0\n", [(5, 5, 0.0), (6, 6, np.exp(2.0))]),
    ],
)
def test_columns_of_openfst_tell_what_they_are(tmp_path, text, arcs):
    (tmp_path / "a").write_text(text)
    a = read(tmp_path / "a")
    assert [(i, o, pytest.approx(w)) for _, _, i, o, w in naive.arcs_of(a)] == arcs


def test_four_columns_may_be_said_to_be_an_acceptor(tmp_path):
    (tmp_path / "a").write_text("0 1 5 2\n1\n")
    assert naive.arcs_of(read(tmp_path / "a", acceptor=True)) == [(0, 1, 5, 5, pytest.approx(np.exp(-2)))]
    assert naive.arcs_of(read(tmp_path / "a", acceptor=False)) == [(0, 1, 5, 2, 1.0)]


LATTICES = """utt-1 
0\t1\t7\tthe\t1.5,2.5
1\t2\t8\tcat\t0.5,-1
2\t0.25,0.5

utt-2 
0\t1\t7\tthe
1

"""  # noqa: W291
COMPACT = """utt-1 
0\t1\tthe\t1.5,2.5,7_7_7
1\t2\tcat\t0.5,-1,
2\t0.25,0.5,8_8

yes\tutt-2
0 1 the 3
1
"""  # noqa: W291


def test_lattices_and_compact_lattices_of_kaldi_have_the_same_words_and_weights(tmp_path):
    (tmp_path / "full").write_text(LATTICES)
    (tmp_path / "compact").write_text(COMPACT)
    full, compact = (dict(read_many(tmp_path / name, acoustic_scale=0.5)) for name in ("full", "compact"))
    assert list(full) == list(compact) == ["utt-1", "utt-2"]
    expected = np.exp(-(1.5 + 1.25)) * np.exp(-(0.5 - 0.5)) * np.exp(-(0.25 + 0.25))
    for found, table in ((full, full["utt-1"].symbols), (compact, compact["utt-1"].symbols)):
        words = automata.project(found["utt-1"], "output")
        assert words.weight([table.number("the"), table.number("cat")]) == pytest.approx(expected)
    assert compact["utt-2"].weight([compact["utt-2"].symbols.number("the")]) == pytest.approx(np.exp(-3))


def test_normalized_lattices_are_posteriors_even_where_costs_are_in_the_thousands(tmp_path):
    (tmp_path / "a").write_text("u\n0 1 a 5000\n0 1 b 5001\n1 2 c -3000\n1 9\n2 8\n0 3 d 1\n3 Infinity\n")
    ((_, a),) = read_many(tmp_path / "a", normalize=True)
    b, c = a.symbols.number("b"), a.symbols.number("c")
    assert automata.total(a) == pytest.approx(1.0)
    assert a.weight([b, c]) == pytest.approx(np.exp(-1.0) / (1.0 + np.exp(-1.0)))
    with pytest.raises(DataError, match="a:4: exp of minus the cost -3000 is too large"):
        list(read_many(tmp_path / "a"))


@pytest.mark.parametrize("seed", range(10))
def test_posteriors_are_shares_of_the_sum_over_all_paths(tmp_path, seed):
    a = random(seed, acceptor=True)
    write(a, tmp_path / "a.ark")
    if not automata.total(a):
        return
    ((_, b),) = read_many(tmp_path / "a.ark", symbols=WORDS, normalize=True)
    whole = naive.language(a)
    total = sum(whole.values())
    assert naive.same(naive.language(b), {x: w / total for x, w in whole.items()})


def network(symbols=WORDS):
    arcs = [(0, 1, 1, 0.75), (0, 1, 0, 0.25), (1, 2, 2, 1.0), (2, 3, 3, 0.5), (2, 3, 1, 0.5)]
    return Automaton.from_arcs(arcs, [3], symbols=symbols)


@pytest.mark.parametrize("dialect", ["sausage", "mesh", "wcn"])
@pytest.mark.parametrize("symbols", [WORDS, None])
def test_confusion_networks_are_read_as_they_were_written(tmp_path, dialect, symbols):
    a = network(symbols)
    path = tmp_path / f"a.{dialect}"
    write_many([("one", a), ("two", a)], path)
    found = list(read_many(path, symbols=symbols))
    assert [name for name, _ in found] == (["a", "a"] if dialect == "wcn" else ["one", "two"])
    assert all(same(a, b) for _, b in found)


@pytest.mark.parametrize(
    "text",
    [
        "utt [ a 0.5 b 0.5 ] [ c 0.25 <eps> 0.75 ]\n",
        "numaligns 2\nposterior 1\nalign 0 a 0.5 b 0.5\nreference 0 a\nalign 1 c 0.25 *DELETE* 0.75\n",
        "a:1:0.5 b:1:0.5 c:2:0.25\n",
        "<cls>:-1:0:1 welcome:0:0:2\t<=>\ta:1:0.5 b:1:0.5 c:2:0.25\t<=>\tinform-food-thai;bye\n",
    ],
)
def test_dialects_of_confusion_networks_say_the_same(tmp_path, text):
    (tmp_path / "a").write_text(text)
    a = read(tmp_path / "a", symbols=SymbolTable("abc"))
    assert naive.same(
        naive.language(a),
        {(x, x): w for x, w in {(1, 3): 0.125, (2, 3): 0.125, (1,): 0.375, (2,): 0.375}.items()},
    )


def test_what_is_not_a_confusion_network_is_not_written_as_one(tmp_path):
    for arcs, ends in (
        ([(0, 1, 1), (0, 2, 2), (1, 2, 1)], [2]),
        ([(0, 1, 1), (1, 2, 1)], [1, 2]),
        ([(0, 1, 1), (1, 0, 1)], [1]),
        ([(0, 1, 1)], []),
    ):
        with pytest.raises(AutomatonError, match="not a confusion network"):
            write(Automaton.from_arcs(arcs, ends), tmp_path / "a.sausage")
    with pytest.raises(AutomatonError, match=r"sum to 0\.5"):
        write(Automaton.from_arcs([(0, 1, 1, 0.5)], [1]), tmp_path / "a.wcn")
    assert not list(tmp_path.iterdir())


def test_drawings_name_all_states_and_arcs_and_escape_labels(tmp_path):
    a = Automaton.from_arcs([(0, 1, 2, 3, 0.5), (1, 1, 0, 1, 1.0)], {1: 2.0}, symbols=WORDS)
    write(a, tmp_path / "a.dot")
    text = (tmp_path / "a.dot").read_text(encoding="utf-8")
    assert text.startswith('digraph "a" {')
    assert '0 -> 1 [label = "q\\"\\\\:ä / 0.5"];' in text
    assert '1 -> 1 [label = "<eps>:cat"];' in text
    assert re.search(r'1 \[label = "1/2", shape = doublecircle\]', text)
    assert re.search(r'0 \[label = "0", style = bold\]', text)
    assert automata.pretty(a) == (
        'transducer of 2 states and 2 arcs\n> 0\n    q"\\:ä / 0.5 -> 1\n  1 final / 2\n    <eps>:cat   -> 1\n'
    )


def test_a_hash_of_a_word_depends_on_the_word_alone():
    one, other = HashedSymbols(["a", "b"]), HashedSymbols(["b"])
    assert one.number("b") == other.number("b") != one.number("a")
    assert one.number("<eps>") == other.number("<eps>") == 0
    assert one.name(one.number("a")) == "a"
    assert 0 < one.number("ä") < 2**31


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1 1 1\n1 2 1 1\n1\n", "a:2: an arc leads to state 2, which is missing"),
        ("0 1 1 1 x\n1\n", "a:1: the weight 'x' is not a number"),
        ("0 1 1 1 nan\n1\n", "a:1: the weight 'nan' is not a finite"),
        ("0 1 1 1\n1 -inf\n", "a:2: the weight '-inf' is not a finite"),
        ("0 1 1 1\n-1\n", "a:2: '-1' is not the number of a state"),
        ("0 1 1 1\n1\n1 0.5\n", "a:3: state 1 is final already"),
        ("0 1 1 1 1 1\n1\n", "a:1: an arc has from 3 to 5 columns"),
        ("0 1 1\n1 2 1 1 0.5\n2\n", "a:1: has 3 columns, but this is a transducer"),
        ("0 1 1 1 -1000\n1\n", "a:1: exp of minus the cost -1000 is too large"),
        ("0 1 dog dog\n1\n", "a:1: the symbol 'dog' is not in the symbol table"),
        ("0 1 4 4\n1\n", "a:1: no symbol of the table has the number 4"),
        ("0 1 1 99999999999\n1\n", "a:1: the label 99999999999 is beyond"),
        ("", "has no states"),
    ],
)
def test_bad_text_is_refused_with_its_line(tmp_path, text, said):
    (tmp_path / "a").write_text(text)
    with pytest.raises(DataError, match=re.escape(said)):
        read(tmp_path / "a", format="text", symbols=WORDS)


@pytest.mark.parametrize(
    ("text", "format", "said"),
    [
        ("u\n0 1 a\n1\n\n0 1 a\n1\n", "kaldi", "a:5: expected a line with the name"),
        ("u\n0 1 3\n1\n\nv\n0 1 a\n1\n", "kaldi", "a:6: the label 'a' is not a number, unlike those before"),
        ("u\n\n", "kaldi", "a:1: has no states"),
        ("u [ a 0.5 b ]\n", "sausage", "a:1: a place has words and their probabilities"),
        ("u [ a 0.5 ] b\n", "sausage", "a:1: a network is a name and places"),
        ("u [ a -0.5 ]\n", "sausage", "a:1: the probability -0.5 is not from 0 to 1"),
        ("a:1:0.5\nb:1:x\n", "wcn", "a:2: the probability 'x' is not a number"),
        ("a:1:0.5 b\n", "wcn", "a:1: 'b' is not word:place:probability"),
        ("a:1:0.8 b:1:0.8\n", "wcn", "a:1: the probabilities at place 1 sum to 1.6"),
        ("a <=> b\n", "wcn", "a:1: has 2 parts"),
        ("numaligns 2\nalign 0 a 1\n", "mesh", "a:1: numaligns says 2 places, but there are 1"),
        ("numaligns 1\nalign 0 a 1\nalign 0 a 1\n", "mesh", "a:3: place 0 is there already"),
        ("numaligns 1\nalign x a 1\n", "mesh", "a:2: align has to be followed by a number"),
    ],
)
def test_bad_archives_are_refused_with_their_line(tmp_path, text, format, said):
    (tmp_path / "a").write_text(text)
    with pytest.raises(DataError, match=re.escape(said)):
        list(read_many(tmp_path / "a", format=format))


def test_damaged_binary_files_are_refused(tmp_path):
    path = tmp_path / "a.fst"
    write(random(1), path)
    whole = path.read_bytes()
    for length in range(8, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"a\.fst: "):
            read(path)
    for old, new, said in (
        (b"vector", b"ngramm", "is an automaton of type 'ngramm'"),
        (b"log64", b"gallc", "has arcs of type 'gallc'"),
    ):
        path.write_bytes(whole.replace(old, new, 1))
        with pytest.raises(DataError, match=said):
            read(path)
    one = Automaton.from_arcs([(0, 1, 1)], [1])
    write(one, path)
    data = bytearray(path.read_bytes())
    data[data.rindex((1).to_bytes(4, "little") + bytes(8) + (1).to_bytes(4, "little")) + 12] = 5  # the arc's target
    path.write_bytes(data)
    with pytest.raises(DataError, match="an arc leads to state 5, but there are 2 states"):
        read(path)


def test_files_that_are_none_of_ours_are_refused(tmp_path):
    (tmp_path / "a").write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match="has none of the known formats of automata"):
        read(tmp_path / "a")
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "b")
    with pytest.raises(AutomatonError, match="say with format= how to write it"):
        write(random(1), tmp_path / "a.bin")
    with pytest.raises(AutomatonError, match="text files hold one automaton, and not 2"):
        write_many([("a", random(1)), ("b", random(2))], tmp_path / "a.txt")
    write_many([("a", random(1)), ("b", random(2))], tmp_path / "a.ark")
    with pytest.raises(DataError, match="has more than one automaton"):
        read(tmp_path / "a.ark")
