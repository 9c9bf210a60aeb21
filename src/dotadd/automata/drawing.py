"""Automata for people: as lines of text, and as a drawing in graphviz's language."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dotadd.automata.automaton import Automaton
from dotadd.automata.openfst_text import labels_of
from dotadd.automata.symbols import EPSILON_NAME


def pretty(automaton: Automaton, digits: int = 4) -> str:
    """A line for each state, and below it one for each of its arcs. `>` marks the start, `/ w` a weight other than 1;
    that of a state is its final weight."""
    texts = _arc_texts(automaton, digits)
    width = max(map(len, texts), default=0)
    lines = [f"{automaton!r}"[1:-1]]
    for state in range(automaton.n_states):
        end = automaton.finals[state]
        lines.append(f"{'>' if state == automaton.start else ' '} {state}{f' final / {end:.{digits}g}' if end else ''}")
        for arc in range(automaton.offsets[state], automaton.offsets[state + 1]):
            lines.append(f"    {texts[arc]:<{width}} -> {automaton.targets[arc]}")
    return "\n".join(lines) + "\n"


def dot(automaton: Automaton, name: str = "automaton", digits: int = 4) -> str:
    """The drawing, for `dot -Tsvg`: final states are circled twice, the start is bold."""
    return "".join(dot_lines(automaton, name, digits))


def dot_lines(automaton: Automaton, name: str = "automaton", digits: int = 4) -> Iterator[str]:
    yield f"digraph {_quoted(name)} {{\n  rankdir = LR;\n  node [shape = circle];\n"
    texts = _arc_texts(automaton, digits)
    for state in range(automaton.n_states):
        end = automaton.finals[state]
        label = f"{state}/{end:.{digits}g}" if end not in (0.0, 1.0) else str(state)
        shape = ", shape = doublecircle" if end else ""
        style = ", style = bold" if state == automaton.start else ""
        yield f"  {state} [label = {_quoted(label)}{shape}{style}];\n"
    for source, target, text in zip(automaton.sources, automaton.targets, texts, strict=True):
        yield f"  {source} -> {target} [label = {_quoted(text)}];\n"
    yield "}\n"


def _arc_texts(automaton: Automaton, digits: int) -> list[str]:
    reads, writes = _names(automaton, automaton.ilabels), _names(automaton, automaton.olabels)
    acceptor = automaton.is_acceptor
    return [
        (read if acceptor else f"{read}:{written}") + (f" / {weight:.{digits}g}" if weight != 1.0 else "")
        for read, written, weight in zip(reads, writes, automaton.weights.tolist(), strict=True)
    ]


def _names(automaton: Automaton, labels: np.ndarray) -> list[str]:
    names = labels_of(automaton, labels)
    return [name if label else EPSILON_NAME for label, name in zip(labels, names, strict=True)]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "")
    return f'"{escaped}"'
