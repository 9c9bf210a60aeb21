"""Lattices: a batch like any other, whose rows are the automata that they were made of."""

from __future__ import annotations

import numpy as np
import pytest

from dotadd.automata import Automaton, equivalent
from dotadd.automata.symbols import SymbolTable
from dotadd.data.lattices import Lattices, is_lattices, lattices_from_arrow
from dotadd.errors import AutomatonError
from dotadd.features.base import Shape

ARCS = [
    ([(0, 2, 5, 0.5), (0, 1, 3, 0.5), (2, 1, 4, 1.0)], {1: 1.0}),  # states not in topological order
    ([(3, 1, 1), (1, 0, 2, 0.25), (1, 2, 0, 0.75)], {0: 2.0, 2: 1.0}, 3),
    ([], {0: 0.5}),
]


def automata() -> list[Automaton]:
    return [Automaton.from_arcs(*arguments) for arguments in ARCS]


def paths(batch: Lattices) -> list[list]:
    return [sorted(batch.automaton(row).paths()) for row in range(len(batch))]


def test_rows_are_the_automata():
    batch = Lattices.from_automata(automata()).checked()
    assert len(batch) == 3
    for row, automaton in enumerate(automata()):
        assert equivalent(batch.automaton(row), automaton)
    assert len(Lattices.from_automata([])) == 0


def test_rows_taken_sliced_and_joined_are_the_rows():
    batch = Lattices.from_automata(automata())
    all_paths = paths(batch)
    assert paths(batch.take(np.array([2, 0, 2]))) == [all_paths[2], all_paths[0], all_paths[2]]
    assert len(batch.take(np.empty(0, np.int64))) == 0
    assert paths(batch.slice(1, 3)) == all_paths[1:]
    assert paths(batch.slice(1, 3).take(np.array([1]))) == all_paths[2:]
    assert paths(Lattices.concat(batch.slice(a, b) for a, b in [(0, 1), (1, 1), (1, 3)])) == all_paths
    assert Lattices.concat([batch]) is batch


def test_bytes_of_rows_are_those_of_their_states_and_arcs():
    batch = Lattices.from_automata(automata())
    assert batch.row_bytes().tolist() == [3 * 16 + 3 * 16, 4 * 16 + 3 * 16, 16]
    assert batch.nbytes == batch.row_bytes().sum() + 8 * 4 + 8


def test_arrow_round_trip_shares_memory():
    batch = Lattices.from_automata(automata())
    array = batch.to_arrow()
    back = lattices_from_arrow(array)
    assert is_lattices(array.type)
    assert paths(back) == paths(batch)
    assert np.shares_memory(back.labels, batch.labels)
    assert np.shares_memory(back.finals, batch.finals)
    assert paths(lattices_from_arrow(batch.slice(1, 3).to_arrow())) == paths(batch)[1:]
    assert paths(lattices_from_arrow(array[1:])) == paths(batch)[1:]
    assert not is_lattices(array.values.field("arcs").type)


def test_lattices_with_names_get_the_numbers_of_a_common_table():
    tables = [SymbolTable(["no", "yes"]), SymbolTable(["yes", "maybe"])]
    rows = [Automaton.from_string([1, 2], symbols=tables[0]), Automaton.from_string([2, 1], symbols=tables[1])]
    common = SymbolTable(["yes"])
    batch = Lattices.from_automata(rows, common)
    words = [[common.name(label) for label in path[0].inputs] for path in paths(batch)]
    assert words == [["no", "yes"], ["maybe", "yes"]]
    with pytest.raises(AutomatonError, match="called"):
        Lattices.from_automata(automata(), common)


def test_what_is_no_lattice_is_refused():
    cyclic = Automaton.from_arcs([(0, 1, 1), (1, 0, 1)], [1])
    with pytest.raises(AutomatonError, match=r"lattice 1: .*cycle"):
        Lattices.from_automata([automata()[0], cyclic])
    with pytest.raises(AutomatonError, match="transducer"):
        Lattices.from_automata([Automaton.from_arcs([(0, 1, 1, 2, 1.0)], [1])])


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("targets", 0, 0, "lattice 0 has an arc to state 0 of 3"),
        ("targets", 5, 9, "lattice 1 has an arc to state 9 of 4"),
        ("labels", 1, -1, "negative"),
        ("weights", 1, np.nan, "finite"),
        ("state_offsets", 3, 99, "offsets"),
        ("arc_offsets", 2, -1, "offsets"),
    ],
)
def test_broken_arrays_are_refused(name, at, value, message):
    batch = Lattices.from_automata(automata())
    getattr(batch, name)[at] = value
    with pytest.raises(AutomatonError, match=message):
        batch.checked()


def test_a_shape_of_lattices_is_their_kind():
    assert Shape.of(Lattices.from_automata(automata())) == Shape("lattices")
