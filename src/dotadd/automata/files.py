"""Files of automata: one front for all formats. The contents of a file tell how to read it, and its name how to write
it.

Files may be compressed (.gz, .bz2, .xz). Weights of OpenFst's and Kaldi's files are costs, and weights here are
exp(-cost); with semiring="real", text has the weights themselves. Confusion networks have probabilities either way.

    binary    OpenFst's binary files, `vector` and `const`                         .fst
    text      OpenFst's text                                                       .txt
    kaldi     Kaldi's text archives of lattices, many automata by name             .ark .lat
    sausage, mesh, wcn    confusion networks of Kaldi, of SRILM, and word:place:probability
    dot       a drawing for graphviz, which cannot be read again                   .dot .gv
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from dotadd._util.compressed import decompressed, lines_of, reading, whole, writing
from dotadd.automata import confusion, openfst
from dotadd.automata.automaton import Automaton
from dotadd.automata.draft import SEMIRINGS, Draft, Numbering, Options
from dotadd.automata.openfst import labels_of
from dotadd.automata.symbols import EPSILON_NAME, SymbolTable
from dotadd.errors import AutomatonError, DataError

FORMATS = ("binary", "text", "kaldi", *confusion.DIALECTS)
MANY = FORMATS[2:]  # those that hold many automata by name
ENDINGS = {
    ".fst": "binary", ".txt": "text", ".ark": "kaldi", ".lat": "kaldi", ".sausage": "sausage", ".mesh": "mesh",
    ".wcn": "wcn", ".dot": "dot", ".gv": "dot",
}  # fmt: skip
_BEGINNING = 1 << 16
_ARC = re.compile(rb"\d+\s+\d+\s+\S+(\s+\S+){0,2}")
_END = re.compile(rb"\d+(\s+\S+)?")
_SURE_END = re.compile(rb"\d+\s+([-+]?\d*\.\d*([eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+|Infinity|inf)")
_WCN = re.compile(rb"\S+:\d+:[-+\d.eE]+(\s+\S+:\d+:[-+\d.eE]+)*")

AnyPath = str | os.PathLike[str]
Symbols = SymbolTable | AnyPath | None


def read(
    path: AnyPath,
    *,
    format: str | None = None,
    symbols: Symbols = None,
    semiring: str = "log",
    acceptor: bool | None = None,
) -> Automaton:
    """The automaton of a file that has one.

    symbols: the table that labels are named by, or its file. A label that it does not have is an error. Without it,
        labels that are not all numbers make up a table of their own. Binary files may bring theirs.
    semiring, acceptor: see `draft.Options`.
    """
    found = read_many(path, format=format, symbols=symbols, semiring=semiring, acceptor=acceptor)
    several = list(islice(found, 2))
    if len(several) != 1:
        raise DataError(
            f"has {'no' if not several else 'more than one'} automaton; read_many reads any number", str(path)
        )
    return several[0][1]


def read_many(
    path: AnyPath,
    *,
    format: str | None = None,
    symbols: Symbols = None,
    semiring: str = "log",
    acceptor: bool | None = None,
    acoustic_scale: float = 1.0,
    normalize: bool = False,
) -> Iterator[tuple[str, Automaton]]:
    """The automata of a file one after the other, each with its name; see `read` and `draft.Options`."""
    options = Options(semiring, acceptor, acoustic_scale, normalize)
    where = os.fspath(path)
    table = symbols if symbols is None or isinstance(symbols, SymbolTable) else SymbolTable.read(symbols)
    with decompressed(where) as (_, file):
        with reading(where):
            beginning = file.read(_BEGINNING)
        kind = format or format_of(beginning)
        if kind not in FORMATS:
            known = f"say which it is with format= (one of {', '.join(FORMATS)})"
            raise DataError(f"has none of the known formats of automata; {known}", where)
        if kind == "binary":
            automaton = openfst.parse_binary(beginning + whole(file, where), where)
            yield _stem(where), _with_table(automaton, table, where)
            return
        numbering = Numbering(table)
        for record in records(_lines(beginning, file, where), kind):
            draft = draft_of(record, where, kind, options, table)
            yield draft.name or _stem(where), draft.automaton(numbering, options.normalize)


def records(lines: Iterable[openfst.Line], format: str) -> Iterator[list[openfst.Line]]:
    """The numbered lines of each automaton."""
    if format == "text":
        yield list(lines)
    elif format == "kaldi":
        yield from openfst.blocks(lines)
    else:
        yield from confusion.records(lines, format)


def draft_of(
    record: list[openfst.Line], path: str | None, format: str, options: Options, table: SymbolTable | None
) -> Draft:
    """The automaton of its lines, before its labels have numbers."""
    if format == "text":
        return openfst.draft_of(record, path, options, table)
    if format == "kaldi":
        return openfst.block_draft(record, path, options, table)
    return confusion.draft_of(record, path, format)


def write(
    automaton: Automaton,
    path: AnyPath,
    *,
    format: str | None = None,
    semiring: str = "log",
    arc_type: str | None = None,
    name: str | None = None,
) -> None:
    """Write a file, which appears whole or not at all. `arc_type` is that of a binary file: log64 unless it is given,
    for the real semiring real64."""
    write_many([(name or _stem(os.fspath(path)), automaton)], path, format=format, semiring=semiring, arc_type=arc_type)


def write_many(
    automata: Iterable[tuple[str, Automaton]],
    path: AnyPath,
    *,
    format: str | None = None,
    semiring: str = "log",
    arc_type: str | None = None,
) -> None:
    """Write automata with their names. Formats that hold one take no more."""
    kind = format or ENDINGS.get(_suffix(os.fspath(path)))
    if kind not in (*FORMATS, "dot"):
        raise AutomatonError(f"{path}: say with format= how to write it (one of {', '.join(FORMATS)}, dot)")
    if semiring not in SEMIRINGS:
        raise AutomatonError(f"semiring has to be 'log' or 'real', and not {semiring!r}")
    if kind not in MANY:
        automata = list(automata)
        if len(automata) != 1:
            raise AutomatonError(f"{path}: {kind} files hold one automaton, and not {len(automata)}")
    with writing(path) as file:
        for name, automaton in automata:
            if kind == "binary":
                file.write(openfst.binary_of(automaton, arc_type or ("real64" if semiring == "real" else "log64")))
                continue
            for line in _written(kind, name, automaton, semiring):
                file.write(line.encode())


def _written(kind: str, name: str, automaton: Automaton, semiring: str) -> Iterator[str]:
    if kind == "text":
        return openfst.lines_of(automaton, semiring)
    if kind == "kaldi":
        return openfst.block_text(name, automaton, semiring)
    if kind == "dot":
        return dot_lines(automaton, name)
    return confusion.text_of(name, automaton, kind)


def format_of(beginning: bytes) -> str | None:
    """The format of a file that begins so, None if it is none of ours."""
    if openfst.is_binary(beginning):
        return "binary"
    lines = [line.strip() for line in beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    if len(beginning) >= _BEGINNING and len(lines) > 1:
        lines.pop()  # it may have been cut
    while lines and not lines[0]:
        lines.pop(0)
    if not lines:
        return None
    first = lines[0]
    if first.startswith(b"numaligns ") or (first.startswith(b"name ") and b"\nnumaligns " in beginning):
        return "mesh"
    if re.search(rb"\s\[ (\S+ [-+\d.eE]+ )+\]$", first):
        return "sausage"
    if first.count(b"<=>") == 2 or _WCN.fullmatch(first.rpartition(b"\t")[2]):
        return "wcn"
    block = lines[: lines.index(b"")] if b"" in lines else lines
    if all(_ARC.fullmatch(line) or _END.fullmatch(line) for line in block[1:6]):
        alone = _END.fullmatch(first) and not any(map(_ARC.fullmatch, block))
        if (
            alone or _ARC.fullmatch(first) or _SURE_END.fullmatch(first)
        ):  # else the name of what follows may be a number
            return "text"
        if any(map(_ARC.fullmatch, block[1:6])) or (len(block) == 2 and _END.fullmatch(block[1])):
            return "kaldi"
    return None


def _lines(beginning: bytes, file: IO[bytes], path: str) -> Iterator[tuple[int, str]]:
    """All lines, numbered."""
    head = beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    rest = lines_of(file, path, len(head))
    last = head.pop()
    _, more = next(rest, (0, b""))
    for number, line in chain(enumerate((*head, last + more), 1), rest):
        yield number, _decoded(line, path, number)


def _decoded(line: bytes, path: str, number: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text", path, number) from None


def _with_table(automaton: Automaton, table: SymbolTable | None, path: str) -> Automaton:
    """A binary automaton under a table that was given: by name if it brings one of its own, else by number."""
    if table is None:
        return automaton
    own = automaton.symbols
    columns = []
    for labels in (automaton.ilabels, automaton.olabels):
        name_of = {label: own.name(label) for label in set(labels.tolist()) if label} if own is not None else {}
        for label in set(labels.tolist()):
            if (name_of[label] not in table) if label in name_of else not table.has(label):
                raise DataError(f"the symbol {name_of.get(label, label)!r} is not in the symbol table", path)
        numbers = [table.number(name_of[label]) if label in name_of else label for label in labels.tolist()]
        columns.append(np.array(numbers, np.int64))
    _, _, _, targets, weights, finals = automaton.arrays
    return Automaton.from_arrays(
        automaton.sources, targets, columns[0], columns[1], weights, finals, automaton.start, table
    )


def _suffix(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in (".gz", ".bz2", ".xz")]
    return suffixes[-1] if suffixes else ""


def _stem(path: str) -> str:
    return Path(path).name.split(".")[0]


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
