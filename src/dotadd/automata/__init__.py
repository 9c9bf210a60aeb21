"""Weighted automata and transducers over the real semiring, and what can be done with them."""

from dotadd.automata.algebra import add, closure, concatenate, equivalent, invert, project, scale
from dotadd.automata.automaton import EPSILON, Automaton, Path
from dotadd.automata.builders import Builder, gappy_ngram, mismatch, ngram, parse
from dotadd.automata.composition import compose
from dotadd.automata.determinization import determinize
from dotadd.automata.epsilon_removal import remove_epsilon
from dotadd.automata.files import dot, pretty, read, read_many, write, write_many
from dotadd.automata.minimization import minimize, push
from dotadd.automata.paths import connect, shortest_distance, topological_order, total
from dotadd.automata.symbols import SymbolTable
from dotadd.automata.weights import NaiveSum, RecomputedMinimal, WeightAutomaton, WeightTrie, feature_automaton
from dotadd.automata.weights.minimal import IncrementalMinimal, NumberedMinimal

__all__ = [
    "EPSILON",
    "Automaton",
    "Builder",
    "IncrementalMinimal",
    "NaiveSum",
    "NumberedMinimal",
    "Path",
    "RecomputedMinimal",
    "SymbolTable",
    "WeightAutomaton",
    "WeightTrie",
    "add",
    "closure",
    "compose",
    "concatenate",
    "connect",
    "determinize",
    "dot",
    "equivalent",
    "feature_automaton",
    "gappy_ngram",
    "invert",
    "minimize",
    "mismatch",
    "ngram",
    "parse",
    "pretty",
    "project",
    "push",
    "read",
    "read_many",
    "remove_epsilon",
    "scale",
    "shortest_distance",
    "topological_order",
    "total",
    "write",
    "write_many",
]
