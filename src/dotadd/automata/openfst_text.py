"""OpenFst's text format: a line for each arc, `source target input output weight`, and for each end, `state weight`.

Acceptors have one label. A weight that is missing is One. The first line's state is the start. Weights are costs, or in
Kaldi's lattices two costs, graph and acoustic, with the alignment after a further comma; see `draft`.

Kaldi's text archives have many automata in one file, each after a line with its name, and before a blank line. Lattices
have arcs `source target transition word graph,acoustic`, compact lattices `source target word graph,acoustic,align`;
automata of one cost an arc are read as well, so that this is also OpenFst's text of many automata. The line with the
name may be `label<TAB>name`, where automata are labelled examples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from dotadd.automata.automaton import Automaton
from dotadd.automata.draft import Draft, Options
from dotadd.automata.symbols import SymbolTable
from dotadd.errors import AutomatonError, DataError

Line = tuple[int, str]
ENDS, ARCS = (1, 2), (3, 4, 5)  # how many columns lines have


def draft_of(
    lines: Iterable[Line], path: str | None, options: Options, symbols: SymbolTable | None = None, first: int = 1
) -> Draft:
    """The automaton of numbered lines. Complaints without a line of their own are about line `first`."""
    draft = Draft(path, first, options.semiring == "log")
    arcs: list[tuple[int, list[str]]] = []
    for number, line in lines:
        words = line.split()
        if not words:
            continue
        if len(words) not in (*ENDS, *ARCS):
            raise DataError("an arc has from 3 to 5 columns and an end 1 or 2", path, number)
        state = _state(words[0], path, number)
        if draft.start is None:
            draft.start = state
        if len(words) in ARCS:
            arcs.append((number, words))
        elif state in draft.finals:
            raise DataError(f"state {state} is final already", path, number)
        else:
            draft.finals[state] = weight_of(words[1], options, path, number) if len(words) == 2 else options.one
    acceptor = _is_acceptor(arcs, options, symbols, path)
    if acceptor:
        draft.outputs = draft.inputs
    labels = 1 if acceptor else 2
    for number, words in arcs:
        draft.sources.append(_state(words[0], path, number))
        draft.targets.append(_state(words[1], path, number))
        draft.inputs.append(words[2])
        if not acceptor:
            draft.outputs.append(words[3])
        written = words[2 + labels :]
        draft.weights.append(weight_of(written[0], options, path, number) if written else options.one)
        draft.lines.append(number)
    return draft


def weight_of(word: str, options: Options, path: str | None, line: int) -> float:
    """A cost, a pair of costs, or a weight of the real semiring."""
    try:
        value = _parsed(word, options)
    except ValueError:
        raise DataError(f"the weight {word!r} is not a number", path, line) from None
    if math.isnan(value) or value == -math.inf or (value == math.inf and options.semiring == "real"):
        raise DataError(f"the weight {word!r} is not a finite number", path, line)
    return value


def _parsed(word: str, options: Options) -> float:
    costs = word.split(",", 2)
    if len(costs) == 1:
        return float(word)
    if options.semiring == "real":
        raise ValueError
    return float(costs[0]) + options.acoustic_scale * float(costs[1])


def _state(word: str, path: str | None, line: int) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 19):
        raise DataError(f"{word!r} is not the number of a state", path, line)
    return int(word)


def _is_acceptor(
    arcs: list[tuple[int, list[str]]], options: Options, symbols: SymbolTable | None, path: str | None
) -> bool:
    """Whether arcs have one label. All of the same automaton have as many."""
    widths = {len(words) for _, words in arcs}
    acceptor = options.acceptor
    if acceptor is None:
        acceptor = 5 not in widths and (3 in widths or _ends_in_weights([words for _, words in arcs], options, symbols))
    wrong = 5 if acceptor else 3
    if wrong in widths or {3, 5} <= widths:
        line = next(number for number, words in arcs if len(words) == (wrong if wrong in widths else 3))
        kind = "an acceptor, whose arcs have" if acceptor else "a transducer, whose arcs have"
        raise DataError(f"has {wrong} columns, but this is {kind} {'3 or 4' if acceptor else '4 or 5'}", path, line)
    return acceptor


def _ends_in_weights(arcs: list[list[str]], options: Options, symbols: SymbolTable | None) -> bool:
    """Whether the last of four columns is a weight: some are weights for sure, or most are numbers behind names.

    One that is not a number will then be complained about. If both last columns are whole numbers, they are two labels.
    """
    thirds, fourths = ([words[place] for words in arcs] for place in (2, 3))
    if symbols is not None and all(word in symbols for word in fourths):
        return False
    numbers = [word for word in fourths if _is_weight(word, options)]
    if any(not word.isdecimal() for word in numbers):
        return True
    return 2 * len(numbers) > len(fourths) and not all(word.isdecimal() for word in thirds)


def _is_weight(word: str, options: Options) -> bool:
    try:
        _parsed(word, options)
    except ValueError:
        return False
    return True


def lines_of(automaton: Automaton, semiring: str = "log", one: str = "{}") -> Iterator[str]:
    """The lines of an automaton. Each state has one, so that it is there when the file is read; the start is first.

    `one` is how a weight is written.
    """
    arc_weights = written_weights(automaton.weights, semiring)
    final_weights = written_weights(automaton.finals, semiring)
    reads, writes = labels_of(automaton, automaton.ilabels), labels_of(automaton, automaton.olabels)
    acceptor = automaton.is_acceptor
    others = (q for q in range(automaton.n_states) if q != automaton.start)
    for state in (automaton.start, *others):
        arcs = range(int(automaton.offsets[state]), int(automaton.offsets[state + 1]))
        for arc in arcs:
            labels = reads[arc] if acceptor else f"{reads[arc]}\t{writes[arc]}"
            yield f"{state}\t{automaton.targets[arc]}\t{labels}\t{one.format(arc_weights[arc])}\n"
        if automaton.finals[state] or not arcs:
            yield f"{state}\t{one.format(final_weights[state])}\n"


def written_weights(weights: np.ndarray, semiring: str) -> list[str]:
    """Weights as they stand in a file: costs, or as they are."""
    if semiring == "real":
        return [repr(value) for value in weights.tolist()]
    return ["Infinity" if cost == math.inf else repr(cost) for cost in costs_of(weights).tolist()]


def costs_of(weights: np.ndarray) -> np.ndarray:
    """-log of the weights."""
    if len(bad := np.flatnonzero(weights < 0.0)):
        raise AutomatonError(
            f"the weight {weights[bad[0]]:g} is negative and has no cost; write the file with semiring='real'"
        )
    with np.errstate(divide="ignore"):
        return -np.log(weights) + 0.0  # no -0.0


def labels_of(automaton: Automaton, labels: np.ndarray) -> list[str]:
    """Labels by name, or by number where there are no names."""
    if automaton.symbols is None:
        return [str(label) for label in labels.tolist()]
    name_of = {label: automaton.symbols.name(label) for label in set(labels.tolist())}
    return [name_of[label] for label in labels.tolist()]


def blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines between blank lines."""
    block: list[Line] = []
    for number, line in lines:
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def block_draft(block: list[Line], path: str | None, options: Options, symbols: SymbolTable | None = None) -> Draft:
    """The automaton of one block, with its name and label."""
    first, head = block[0]
    words = head.split()
    if len(words) > 2 and words[0].isdecimal() and words[1].isdecimal():
        raise DataError("expected a line with the name of an automaton before its arcs", path, first)
    draft = draft_of(block[1:], path, options, symbols, first)
    if "\t" in head.strip():
        label, _, head = head.strip().partition("\t")
        draft.label = label.strip()
    draft.name = head.strip()
    return draft


def block_text(name: str, automaton: Automaton, semiring: str = "log") -> Iterator[str]:
    """The lines of one automaton: a compact lattice if it is an acceptor, else a lattice."""
    compact = "{},0," if automaton.is_acceptor else "{},0"
    yield f"{name} \n"
    yield from lines_of(automaton, semiring, "{}" if semiring == "real" else compact)
    yield "\n"
