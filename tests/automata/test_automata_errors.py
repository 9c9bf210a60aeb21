"""What is no automaton, or not of the kind that an operation needs, is refused in one line."""

import pickle

import numpy as np
import pytest

from dotadd.automata import (
    Automaton,
    add,
    determinize,
    minimize,
    project,
    push,
    remove_epsilon,
    shortest_distance,
    topological_order,
    total,
)
from dotadd.errors import AutomatonError, DotaddError


def chain(**changes):
    arrays = {
        "offsets": [0, 2, 3, 3],
        "ilabels": [1, 2, 1],
        "olabels": [1, 2, 1],
        "targets": [1, 1, 2],
        "weights": [1.0, 2.0, 3.0],
        "finals": [0.0, 0.0, 1.0],
    }
    return Automaton(**{name: np.array(value) for name, value in arrays.items()} | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": 3}, "the start is state 3, but there are 3 states"),
        ({"targets": np.array([1, 7, 2])}, "leads to state 7, but there are 3 states"),
        ({"targets": np.array([1, -1, 2])}, "targets are from 0"),
        ({"ilabels": np.array([1, -2, 1])}, "labels are from 0"),
        ({"ilabels": np.array([2, 1, 1])}, "arcs of state 0 are not sorted"),
        ({"olabels": np.array([1.0, 2.0, 1.0])}, "labels have to be a flat array of numbers"),
        ({"weights": np.array([1.0, np.nan, 1.0])}, "from state 0 to state 1 has the weight nan"),
        ({"finals": np.array([0.0, 0.0, np.inf])}, "state 2 has the final weight inf"),
        ({"offsets": np.array([0, 2, 1, 3])}, "offsets"),
        ({"offsets": np.array([0, 2, 3])}, "offsets"),
        ({"weights": np.array([1.0, 2.0])}, "3 arcs have 3 and 3 labels and 2 weights"),
        ({"finals": np.array([])}, "from 1 to"),
    ],
)
def test_a_malformed_automaton_is_refused(changes, message):
    assert chain().weight([2, 1]) == 6.0
    with pytest.raises(AutomatonError, match=r"^[^\n]*$") as caught:
        chain(**changes)
    assert message in str(caught.value)


CYCLE = Automaton.from_arcs([(0, 1, 1), (1, 2, 2), (2, 1, 1), (1, 3, 1)], [3])
TRANSDUCER = Automaton.from_arcs([(0, 1, 1, 2, 1.0)], [1])


@pytest.mark.parametrize("operation", [topological_order, determinize, push, minimize, Automaton.paths])
def test_a_cycle_where_none_may_be_is_named(operation):
    with pytest.raises(AutomatonError, match=r"has a cycle through state [12]"):
        operation(CYCLE)


@pytest.mark.parametrize("weight", [1.0, -1.0, 2.0, 1 - 1e-16])
def test_paths_without_a_finite_sum_are_refused(weight):
    a = Automaton.from_arcs([(0, 1, 1, 1.0), (1, 2, 0, weight), (2, 1, 0, 1.0), (2, 3, 1, 1.0)], [3])
    for operation in (total, remove_epsilon, shortest_distance):
        with pytest.raises(AutomatonError, match=r"no finite sum: .* cycle through state [12]"):
            operation(a)


def test_operations_refuse_what_they_are_not_for():
    with pytest.raises(AutomatonError, match="determinization is for acceptors"):
        determinize(TRANSDUCER)
    with pytest.raises(AutomatonError, match=r"weight\(x, y\)"):
        TRANSDUCER.weight([1])
    with pytest.raises(AutomatonError, match="state 0 has two arcs for one label"):
        minimize(Automaton.from_arcs([(0, 1, 1), (0, 2, 1)], [1, 2]))
    with pytest.raises(AutomatonError, match="more than 3 accepting paths"):
        add([Automaton.from_string([1])] * 4).paths(limit=3)
    with pytest.raises(AutomatonError, match="'input' or its 'output'"):
        project(TRANSDUCER, "both")
    with pytest.raises(AutomatonError, match="tolerance"):
        minimize(Automaton.from_string([1]), 0.1)
    with pytest.raises(AutomatonError, match="too large or too small"):
        minimize(determinize(Automaton.from_arcs([(q, q + 1, 1, 1e-300) for q in range(5)], [5])))
    with pytest.raises(AutomatonError, match="as many coefficients"):
        add([TRANSDUCER], [1.0, 2.0])
    with pytest.raises(AutomatonError, match="finite"):
        float("nan") * TRANSDUCER
    for labels in ([0], [1, -1], [1.5], ["a"]):
        with pytest.raises(AutomatonError):
            Automaton.from_string(labels)
    with pytest.raises(AutomatonError, match="an arc is"):
        Automaton.from_arcs([(0, 1)], [1])
    with pytest.raises(AutomatonError, match="no state -1"):
        Automaton.from_arcs([(0, -1, 1)], [1])
    with pytest.raises(TypeError):
        TRANSDUCER + 1
    assert issubclass(AutomatonError, DotaddError)


def test_automata_with_different_symbols_are_not_put_together():
    a, b = (Automaton.from_string([1], symbols=table) for table in ({"x": 1}, {"y": 1}))
    for operation in (lambda: a + b, lambda: a * b, lambda: a @ b):
        with pytest.raises(AutomatonError, match="different symbol tables"):
            operation()
    plain = Automaton.from_string([1])
    assert (a @ plain).symbols == (plain + a).symbols == {"x": 1}


@pytest.mark.parametrize("a", [chain(), pickle.loads(pickle.dumps(chain()))])
def test_an_automaton_cannot_be_written_to(a):
    assert a.weight([2, 1]) == 6.0
    with pytest.raises(ValueError, match="read-only"):
        a.weights[0] = 5.0
    with pytest.raises(AttributeError):
        a.start = 1


def test_repr_tells_kind_and_size():
    assert repr(chain()) == "<acceptor of 3 states and 3 arcs>"
    assert repr(TRANSDUCER) == "<transducer of 2 states and 1 arcs>"
    empty = Automaton.from_arcs([], {})
    assert (empty.n_states, empty.n_arcs, empty.paths(), empty.weight([1])) == (1, 0, [], 0.0)
