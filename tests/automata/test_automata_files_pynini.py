"""Files of automata against OpenFst by way of pynini: each reads what the other wrote, with the same weights."""

import naive_automata as naive
import numpy as np
import pytest

import dotadd.automata as automata
from dotadd.automata import Automaton, SymbolTable, read, write

pynini = pytest.importorskip("pynini", reason="pynini (OpenFst), the oracle of these tests, is not installed")
pywrapfst = pytest.importorskip("pywrapfst", reason="pywrapfst comes with pynini, which is not installed")

SEEDS = range(12)
WORDS = SymbolTable(["cat", "the", "ä"])


def random(seed, symbols=None, **options):
    a = naive.random_automaton(np.random.default_rng(seed), 6, 11, 3, values=(0.25, 0.5, 1, 2, 3), **options)
    return Automaton(*a.arrays, a.start, symbols)


def arcs_of(fst):
    return sorted(
        (state, arc.nextstate, arc.ilabel, arc.olabel, round(float(np.exp(-float(arc.weight))), 4))
        for state in fst.states()
        for arc in fst.arcs(state)
    )


def ends_of(fst):
    return [round(float(np.exp(-float(fst.final(state)))), 4) for state in fst.states()]


def same(a, fst):
    """The same states and arcs; pynini gives numbers as text of few digits."""
    ours = sorted((*arc[:4], round(arc[4], 4)) for arc in naive.arcs_of(a))
    return ours == arcs_of(fst) and np.round(a.finals, 4).tolist() == ends_of(fst) and a.start == fst.start()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("arc_type", ["log64", "log", "standard"])
def test_openfst_reads_our_binary_files(tmp_path, seed, arc_type):
    a = random(seed, WORDS, acyclic=seed % 2 == 0)
    write(a, tmp_path / "a.fst", arc_type=arc_type)
    fst = pywrapfst.Fst.read(str(tmp_path / "a.fst"))
    assert fst.verify()
    assert fst.arc_type() == arc_type
    assert same(a, fst)
    assert dict(fst.input_symbols()) == dict(fst.output_symbols()) == {n: name for name, n in WORDS.pairs()}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("arc_type", ["log64", "log", "standard"])
@pytest.mark.parametrize("kind", ["vector", "const"])
def test_binary_files_of_openfst_are_read(tmp_path, seed, arc_type, kind):
    a = random(seed, WORDS, acyclic=seed % 2 == 0)
    write(a, tmp_path / "a.fst", arc_type=arc_type)
    fst = pywrapfst.convert(pywrapfst.Fst.read(str(tmp_path / "a.fst")), kind)
    fst.write(str(tmp_path / "b.fst"))
    assert (tmp_path / "a.fst").read_bytes() != (tmp_path / "b.fst").read_bytes()
    b = read(tmp_path / "b.fst")
    assert same(b, fst)
    assert b.symbols == WORDS
    np.testing.assert_allclose(b.weights, a.weights, rtol=1e-15 if arc_type == "log64" else 1e-6)


@pytest.mark.parametrize("symbols", [WORDS, None])
@pytest.mark.parametrize("seed", SEEDS)
def test_openfst_compiles_our_text_and_we_read_what_it_prints(tmp_path, seed, symbols):
    a = random(seed, symbols, acceptor=seed % 2 == 0)
    write(a, tmp_path / "a.txt")
    table = None
    if symbols is not None:
        symbols.save(tmp_path / "words.txt")
        table = pywrapfst.SymbolTable.read_text(str(tmp_path / "words.txt"))
    compiler = pywrapfst.Compiler(
        arc_type="log64", isymbols=table, osymbols=table, acceptor=a.is_acceptor, keep_state_numbering=True
    )
    compiler.write((tmp_path / "a.txt").read_text(encoding="utf-8"))
    fst = compiler.compile()
    assert same(a, fst)
    fst.connect()
    if not fst.num_states():
        return
    text = fst.print(isymbols=table, osymbols=table, acceptor=a.is_acceptor)
    (tmp_path / "b.txt").write_text(text, encoding="utf-8")
    b = read(tmp_path / "b.txt", symbols=symbols, format="text", acceptor=a.is_acceptor)
    assert naive.same(naive.language(a), naive.language(b), 1e-5)


def test_different_tables_of_inputs_and_outputs_become_one(tmp_path):
    fst = pywrapfst.VectorFst("log64")
    one, other = pywrapfst.SymbolTable(), pywrapfst.SymbolTable()
    for name in ("<eps>", "a", "b"):
        one.add_symbol(name)
    for name in ("<eps>", "b", "c"):
        other.add_symbol(name)
    start, end = fst.add_state(), fst.add_state()
    fst.set_start(start)
    fst.set_final(end)
    for i, o in ((1, 2), (2, 1)):  # a:c and b:b
        fst.add_arc(start, pywrapfst.Arc(i, o, pywrapfst.Weight.one("log64"), end))
    fst.set_input_symbols(one)
    fst.set_output_symbols(other)
    fst.write(str(tmp_path / "a.fst"))
    a = read(tmp_path / "a.fst")
    assert list(a.symbols) == ["a", "b", "c"]
    assert naive.language(a) == {((1,), (3,)): 1.0, ((2,), (2,)): 1.0}


@pytest.mark.parametrize("seed", SEEDS)
def test_operations_on_files_are_those_of_openfst(tmp_path, seed):
    a, b = random(seed), random(seed + 100)
    for name, automaton in (("a", a), ("b", b)):
        write(automaton, tmp_path / f"{name}.fst")
    f, g = (pynini.Fst.read(str(tmp_path / f"{name}.fst")) for name in "ab")
    composed = pynini.compose(f.arcsort("olabel"), g.arcsort("ilabel"))
    minimal = pynini.determinize(pynini.rmepsilon(pynini.project(f, "input")))
    determined = minimal.copy()
    minimal.minimize()
    ours = automata.determinize(automata.project(a, "input"))
    for name, theirs, mine, rounding in (  # OpenFst rounds weights while it compares them
        ("composed", composed, a @ b, 1e-9),
        ("determined", determined, ours, 1e-4),
        ("minimal", minimal, automata.minimize(ours), 1e-3),
    ):
        theirs.write(str(tmp_path / f"{name}.fst"))
        assert naive.same(naive.language(read(tmp_path / f"{name}.fst")), naive.language(mine), rounding)
