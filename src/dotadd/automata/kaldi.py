"""Kaldi's text archives: many automata in one file, each after a line with its name, and before a blank line.

Lattices have arcs `source target transition word graph,acoustic`, compact lattices `source target word
graph,acoustic,alignment`; automata of one cost an arc are read as well, so that this is also OpenFst's text of many
automata. The line with the name may be `label<TAB>name`, where automata are labelled examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dotadd.automata.automaton import Automaton
from dotadd.automata.draft import Draft, Options
from dotadd.automata.openfst_text import Line, draft_of, lines_of
from dotadd.automata.symbols import SymbolTable
from dotadd.errors import DataError


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
