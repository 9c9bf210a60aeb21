"""Weighted automata and transducers over the real semiring, and what can be done with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotadd._lazy import lazy

if TYPE_CHECKING:
    from dotadd.automata.addition import add as add
    from dotadd.automata.addition import scale as scale
    from dotadd.automata.automaton import EPSILON as EPSILON
    from dotadd.automata.automaton import Automaton as Automaton
    from dotadd.automata.automaton import Path as Path
    from dotadd.automata.builders import Builder as Builder
    from dotadd.automata.builders import gappy_ngram as gappy_ngram
    from dotadd.automata.builders import mismatch as mismatch
    from dotadd.automata.builders import ngram as ngram
    from dotadd.automata.composition import compose as compose
    from dotadd.automata.concatenation import concatenate as concatenate
    from dotadd.automata.connection import connect as connect
    from dotadd.automata.determinization import determinize as determinize
    from dotadd.automata.distance import shortest_distance as shortest_distance
    from dotadd.automata.distance import total as total
    from dotadd.automata.drawing import dot as dot
    from dotadd.automata.drawing import pretty as pretty
    from dotadd.automata.epsilon_removal import remove_epsilon as remove_epsilon
    from dotadd.automata.equivalence import equivalent as equivalent
    from dotadd.automata.expression import parse as parse
    from dotadd.automata.files import read as read
    from dotadd.automata.files import read_many as read_many
    from dotadd.automata.files import write as write
    from dotadd.automata.files import write_many as write_many
    from dotadd.automata.incremental_minimal import IncrementalMinimal as IncrementalMinimal
    from dotadd.automata.inversion import invert as invert
    from dotadd.automata.kleene import closure as closure
    from dotadd.automata.minimization import minimize as minimize
    from dotadd.automata.numbered_minimal import NumberedMinimal as NumberedMinimal
    from dotadd.automata.order import topological_order as topological_order
    from dotadd.automata.projection import project as project
    from dotadd.automata.pushing import push as push
    from dotadd.automata.symbols import SymbolTable as SymbolTable
    from dotadd.automata.weight_automaton import NaiveSum as NaiveSum
    from dotadd.automata.weight_automaton import RecomputedMinimal as RecomputedMinimal
    from dotadd.automata.weight_automaton import WeightAutomaton as WeightAutomaton
    from dotadd.automata.weight_automaton import feature_automaton as feature_automaton
    from dotadd.automata.weight_trie import WeightTrie as WeightTrie

__all__, __getattr__ = lazy(
    __name__,
    {
        ".addition": ["add", "scale"],
        ".automaton": ["EPSILON", "Automaton", "Path"],
        ".builders": ["Builder", "gappy_ngram", "mismatch", "ngram"],
        ".composition": ["compose"],
        ".concatenation": ["concatenate"],
        ".connection": ["connect"],
        ".determinization": ["determinize"],
        ".distance": ["shortest_distance", "total"],
        ".drawing": ["dot", "pretty"],
        ".epsilon_removal": ["remove_epsilon"],
        ".equivalence": ["equivalent"],
        ".expression": ["parse"],
        ".files": ["read", "read_many", "write", "write_many"],
        ".incremental_minimal": ["IncrementalMinimal"],
        ".inversion": ["invert"],
        ".kleene": ["closure"],
        ".minimization": ["minimize"],
        ".numbered_minimal": ["NumberedMinimal"],
        ".order": ["topological_order"],
        ".projection": ["project"],
        ".pushing": ["push"],
        ".symbols": ["SymbolTable"],
        ".weight_automaton": ["NaiveSum", "RecomputedMinimal", "WeightAutomaton", "feature_automaton"],
        ".weight_trie": ["WeightTrie"],
    },
)
