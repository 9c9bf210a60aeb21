"""Putting automata together: their states side by side, and more arcs between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd.automata.automaton import EPSILON, MAX_STATES, Automaton
from dotadd.errors import AutomatonError


def side_by_side(automata: Sequence[Automaton], first: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """The arrays of automata one after the other, states numbered from `first`; and the first state of each."""
    states = first + np.concatenate([[0], np.cumsum([automaton.n_states for automaton in automata])])
    if states[-1] > MAX_STATES:
        raise AutomatonError(f"together the automata have {states[-1]} states, more than {MAX_STATES}")
    arcs = np.concatenate([[0], np.cumsum([automaton.n_arcs for automaton in automata])])
    ilabels, olabels, targets, weights, finals = (
        np.concatenate([automaton.arrays[field] for automaton in automata]) for field in range(1, 6)
    )
    offsets = [automaton.offsets[:-1] + at for automaton, at in zip(automata, arcs[:-1], strict=True)]
    targets += np.repeat(states[:-1], np.diff(arcs)).astype(np.int32)
    return states[:-1], (np.concatenate([*offsets, arcs[-1:]]), ilabels, olabels, targets, weights, finals)


def with_epsilons(
    arrays: tuple[np.ndarray, ...], sources: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The arrays of an automaton with further epsilon arcs; epsilon is the least label, so they come first."""
    offsets, *columns, finals = arrays
    order = np.argsort(sources, kind="stable")
    at = offsets[sources[order]]
    epsilons = np.full(len(sources), EPSILON)
    new = (epsilons, epsilons, targets[order], weights[order])
    columns = [np.insert(column, at, values) for column, values in zip(columns, new, strict=True)]
    added = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=len(finals)))])
    return (offsets + added, *columns, finals)
