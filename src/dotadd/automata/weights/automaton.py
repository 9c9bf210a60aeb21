"""W', the weight vector of a rational kernel's SVM as a weighted automaton: a string's weight in it is its w.

Algorithm 2 of Allauzen, Cortes and Mohri does two things with W': D(Phi'_i o W'), the gradient, and the update
W' + alpha Phi'_i. Their table 3 has three forms, and an open question: can a minimal automaton be updated at a cost
that does not depend on its size? Here are their forms, and two answers.

    form                 gradient         update               transitions
    NaiveSum             |Phi'_i| |W'|    1                    m + sum of |Phi'_i|
    WeightTrie           n l              n l                  prefixes of all strings
    RecomputedMinimal    |Phi'_i o W'|    |W'|                 the fewest of any deterministic automaton
    IncrementalMinimal   |Phi'_i o W'|    |Phi'_i o W'| d      the fewest, up to rounding
    NumberedMinimal      |Phi'_i o W'|    |Phi'_i o W'|        those of the strings without weights, and a vector

n is the number of strings of Phi'_i, l their length, d the arcs of a state on their paths, and |Phi'_i o W'| at most
n l. `benchmarks.automata` measures them.

These are for looking at W', and for comparing its forms. To train, use `dotadd.Rational` with any solver: its w is a
flat array under ids of strings, faster than all of these.
"""

from __future__ import annotations

from weakref import WeakSet

from dotadd.automata.algebra import add, project
from dotadd.automata.automaton import Automaton, check_acceptor
from dotadd.automata.composition import compose
from dotadd.automata.connection import check_acyclic
from dotadd.automata.determinization import determinize
from dotadd.automata.distance import total
from dotadd.automata.epsilon_removal import remove_epsilon
from dotadd.automata.minimization import minimize
from dotadd.errors import AutomatonError


def feature_automaton(x: Automaton, transducer: Automaton) -> Automaton:
    """Phi' of an example: the minimal deterministic automaton of what X o T writes."""
    return minimize(determinize(remove_epsilon(project(compose(x, transducer), "output"))))


class WeightAutomaton:
    """W'. What is added and scored are deterministic acceptors without cycles."""

    def add(self, alpha: float, phi: Automaton) -> None:
        """W' + alpha Phi'."""
        raise NotImplementedError

    def score(self, phi: Automaton) -> float:
        """D(Phi' o W'), the sum over all strings of the products of their weights."""
        raise NotImplementedError

    @property
    def transitions(self) -> int:
        raise NotImplementedError

    def automaton(self) -> Automaton:
        """W' as an automaton."""
        raise NotImplementedError


class NaiveSum(WeightAutomaton):
    """All Phi' side by side, each under an epsilon of weight alpha (section 5.1). One that is added again moves it."""

    def __init__(self) -> None:
        self._alphas: dict[int, float] = {}
        self._phis: dict[int, Automaton] = {}

    def add(self, alpha: float, phi: Automaton) -> None:
        self._phis[id(phi)] = phi
        self._alphas[id(phi)] = self._alphas.get(id(phi), 0.0) + alpha

    def score(self, phi: Automaton) -> float:
        return sum(alpha * total(compose(phi, self._phis[k])) for k, alpha in self._alphas.items() if alpha)

    @property
    def transitions(self) -> int:
        return len(self._phis) + sum(phi.n_arcs for phi in self._phis.values())

    def automaton(self) -> Automaton:
        if not self._phis:
            return Automaton.from_arcs([], {})
        return add(list(self._phis.values()), list(self._alphas.values()))


class RecomputedMinimal(WeightAutomaton):
    """The minimal deterministic automaton, made anew at each update by sum, determinization and minimization."""

    def __init__(self) -> None:
        self._w = Automaton.from_arcs([], {})

    def add(self, alpha: float, phi: Automaton) -> None:
        if alpha:
            self._w = minimize(determinize(add([self._w, phi], [1.0, alpha])))

    def score(self, phi: Automaton) -> float:
        return total(compose(phi, self._w))

    @property
    def transitions(self) -> int:
        return self._w.n_arcs

    def automaton(self) -> Automaton:
        return self._w


def check_feature_automaton(phi: Automaton) -> Automaton:
    """Refuse an automaton in which a string may have several paths, or infinitely many strings one.

    What has been looked at is not looked at again: examples come in every pass.
    """
    if phi in _CHECKED:
        return phi
    check_acceptor(phi, "a feature vector")
    if (state := phi.first_ambiguity()) is not None:
        raise AutomatonError(f"state {state} has two arcs for one label, or one for epsilon: determinize it first")
    check_acyclic(phi)
    _CHECKED.add(phi)
    return phi


_CHECKED: WeakSet[Automaton] = WeakSet()
