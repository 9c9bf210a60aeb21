"""Confusion networks: at each place some words, one of which was said, with their probabilities. Three dialects.

sausage (Kaldi): a line each, `name [ word 0.7 other 0.3 ] [ word 1 ]`.
mesh (SRILM): lines `name NAME`, `numaligns N`, and for each place `align 0 word 0.7 other 0.3`.
wcn: a line each, `word:1:0.7 other:1:0.3 word:2:1.0` with the number of the place. The rest of a place's probability is
that nothing was said there. `label<TAB>` or `label<TAB>name<TAB>` may stand before it, as before a sausage; and so may
the form of the dialogue challenge DSTC2, `system acts <=> network <=> user acts`, where the user's acts are the label.

Probabilities are weights of the real semiring. That nothing was said is the empty word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

import numpy as np

from dotadd.automata.automaton import EPSILON, Automaton
from dotadd.automata.draft import Draft
from dotadd.automata.openfst import Line, labels_of
from dotadd.automata.symbols import EPSILON_NAME
from dotadd.errors import AutomatonError, DataError

DIALECTS = ("sausage", "mesh", "wcn")
NOTHING = {EPSILON_NAME, "*DELETE*", "!NULL"}
ROUNDING = 1e-4  # by which the probabilities at a place may be off
ACTS = "<=>"
_SAUSAGE = re.compile(r"([^\[\]]*?)\s*((?:\[[^\[\]]*\]\s*)*)")

Places = list[list[tuple[str, float]]]


def records(lines: Iterable[Line], dialect: str) -> Iterator[list[Line]]:
    """The lines of each network."""
    if dialect != "mesh":
        yield from ([(number, line)] for number, line in lines if line.strip())
        return
    waiting: list[Line] = []
    counted = False
    for number, line in lines:
        key = line.split()[:1]
        if counted and key in (["name"], ["numaligns"]):  # a network begins with its name, if it has one
            yield waiting
            waiting, counted = [], False
        counted = counted or key == ["numaligns"]
        if key:
            waiting.append((number, line))
    if waiting:
        yield waiting


def draft_of(record: list[Line], path: str | None, dialect: str) -> Draft:
    """The network of its lines."""
    if dialect == "mesh":
        return _mesh(record, path)
    return (_sausage if dialect == "sausage" else _wcn)(*record[0], path)


def _draft(places: Places, path: str | None, line: int, name: str = "", label: str | None = None) -> Draft:
    draft = Draft(path, line, costs=False, name=name, label=label, start=0, finals={len(places): 1.0})
    draft.outputs = draft.inputs
    for state, place in enumerate(places):
        for word, probability in place:
            draft.sources.append(state)
            draft.targets.append(state + 1)
            draft.inputs.append(EPSILON_NAME if word in NOTHING else word)
            draft.weights.append(probability)
            draft.lines.append(line)
    return draft


def _pairs(words: list[str], path: str | None, line: int) -> list[tuple[str, float]]:
    """Words and probabilities in turn."""
    if len(words) % 2 or not words:
        raise DataError("a place has words and their probabilities in turn", path, line)
    return [(word, _probability(number, path, line)) for word, number in zip(words[::2], words[1::2], strict=True)]


def _probability(word: str, path: str | None, line: int) -> float:
    try:
        value = float(word)
    except ValueError:
        raise DataError(f"the probability {word!r} is not a number", path, line) from None
    if not 0.0 <= value <= 1.0 + ROUNDING:
        raise DataError(f"the probability {word} is not from 0 to 1", path, line)
    return value


def _head(words: str) -> tuple[str | None, str]:
    """Label and name of what stands before a network, a tab between them."""
    label, tab, name = words.strip().partition("\t")
    return (label.strip(), name.strip()) if tab else (None, label)


def _sausage(number: int, line: str, path: str | None) -> Draft:
    found = _SAUSAGE.fullmatch(line.strip())
    if found is None:
        raise DataError("a network is a name and places like [ word 0.7 other 0.3 ]", path, number)
    places = [_pairs(place.split(), path, number) for place in re.findall(r"\[([^\[\]]*)\]", found[2])]
    label, name = _head(found[1])
    return _draft(places, path, number, name, label)


def _wcn(number: int, line: str, path: str | None) -> Draft:
    label: str | None
    parts = line.rstrip("\r\n").split(ACTS)
    if len(parts) == 3:
        label, name, network = parts[2].strip(), "", parts[1]
    elif len(parts) == 1:
        *head, network = line.strip().split("\t")
        label, name = (head[0].strip() if head else None), (head[1].strip() if len(head) > 1 else "")
    else:
        raise DataError(f"has {len(parts)} parts between {ACTS}; those of a network are three, or one", path, number)
    places: dict[int, list[tuple[str, float]]] = {}
    for entry in network.split():
        match entry.rsplit(":", 2):
            case [word, place, probability] if word and _is_place(place):
                places.setdefault(int(place), []).append((word, _probability(probability, path, number)))
            case _:
                raise DataError(f"{entry!r} is not word:place:probability", path, number)
    return _draft([_whole(places[at], at, path, number) for at in sorted(places)], path, number, name, label)


def _is_place(word: str) -> bool:
    return word.isdecimal() and len(word) < 10


def _whole(place: list[tuple[str, float]], at: int, path: str | None, line: int) -> list[tuple[str, float]]:
    """The place with what is missing to 1: that nothing was said."""
    total = math.fsum(probability for _, probability in place)
    if total > 1.0 + ROUNDING:
        raise DataError(f"the probabilities at place {at} sum to {total:g}", path, line)
    return [*place, (EPSILON_NAME, 1.0 - total)] if total < 1.0 - 1e-9 else place


def _mesh(lines: list[Line], path: str | None) -> Draft:
    expected = None
    label, name = None, ""
    places: dict[int, list[tuple[str, float]]] = {}
    for number, line in lines:
        match line.split():
            case ["name", *_]:
                label, name = _head(line.strip().removeprefix("name"))
            case ["numaligns", count] if _is_place(count):
                expected = int(count)
            case ["align", at, *pairs] if _is_place(at):
                if int(at) in places:
                    raise DataError(f"place {at} is there already", path, number)
                places[int(at)] = _pairs(pairs, path, number)
            case ["numaligns" | "align" as key, *_]:
                raise DataError(f"{key} has to be followed by a number", path, number)
    if expected is None or len(places) != expected or sorted(places) != list(range(expected)):
        raise DataError(f"numaligns says {expected or 'no'} places, but there are {len(places)}", path, lines[0][0])
    return _draft([places[at] for at in range(expected)], path, lines[0][0], name, label)


def places_of(automaton: Automaton) -> Places:
    """The words and weights at each place, of an automaton that is a confusion network."""
    if not automaton.is_acceptor:
        raise AutomatonError("this is a transducer, and a confusion network is an acceptor")
    names = labels_of(automaton, automaton.ilabels)
    silent = automaton.ilabels == EPSILON
    names = [EPSILON_NAME if empty else name for empty, name in zip(silent, names, strict=True)]
    state, seen, places = automaton.start, {automaton.start}, []
    while (arcs := range(int(automaton.offsets[state]), int(automaton.offsets[state + 1]))) and (
        not automaton.finals[state]
    ):
        following = {int(automaton.targets[arc]) for arc in arcs}
        if len(following) > 1 or following & seen:
            raise _other_shape()
        places.append([(names[arc], float(automaton.weights[arc])) for arc in arcs])
        state = following.pop()
        seen.add(state)
    end = float(automaton.finals[state])
    if arcs or len(seen) < automaton.n_states or not end:
        raise _other_shape()
    if end != 1.0:
        if not places:
            raise AutomatonError("a confusion network without places has the weight 1")
        places[-1] = [(name, weight * end) for name, weight in places[-1]]
    return places


def _other_shape() -> AutomatonError:
    return AutomatonError("this is not a confusion network: all arcs of a state have to lead to the same next state")


def text_of(name: str, automaton: Automaton, dialect: str) -> Iterator[str]:
    """The lines of a network."""
    places = places_of(automaton)
    if len(bad := np.flatnonzero(automaton.weights < 0)):
        raise AutomatonError(f"the weight {automaton.weights[bad[0]]:g} is negative, and no probability")
    if dialect == "mesh":
        yield f"name {name}\nnumaligns {len(places)}\nposterior 1\n"
        for at, place in enumerate(places):
            pairs = (f"{'*DELETE*' if word == EPSILON_NAME else word} {weight!r}" for word, weight in place)
            yield f"align {at} {' '.join(pairs)}\n"
    elif dialect == "sausage":
        nothing = "0" if automaton.symbols is None else EPSILON_NAME  # as Kaldi has it among numbers
        named = ([(nothing if word == EPSILON_NAME else word, weight) for word, weight in place] for place in places)
        written = (" ".join(f"{word} {weight!r}" for word, weight in place) for place in named)
        yield " ".join([name, *(f"[ {place} ]" for place in written)]) + "\n"
    else:
        yield " ".join(_entries(places)) + "\n"


def _entries(places: Places) -> Iterator[str]:
    for at, place in enumerate(places, 1):
        total = math.fsum(weight for _, weight in place)
        if abs(total - 1.0) > ROUNDING:
            raise AutomatonError(f"the weights at place {at} sum to {total:g}, and as a wcn they have to sum to 1")
        words = [(word, weight) for word, weight in place if word != EPSILON_NAME] or [(EPSILON_NAME, 1.0)]
        yield from (f"{word}:{at}:{weight!r}" for word, weight in words)
