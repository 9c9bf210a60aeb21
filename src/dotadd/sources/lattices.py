"""Lattices in files: many weighted automata, each an example with a label, that stream like any other examples.

Text that can be read, told by its contents:

- archives of Kaldi's or OpenFst's text (`automata.kaldi`), `label<TAB>name` on the line before each lattice. Of a
  transducer, what it writes is read: in Kaldi's lattices, the words.
- confusion networks (`automata.confusion`), with `label<TAB>name` before each, or those of DSTC2, whose label is the
  user's dialogue acts, `null` where there are none. With `label="inform"`, labels are 1 where one of the acts is
  `inform` or begins with `inform-`, and -1 elsewhere. The system's acts are not read.
- tables with a column of lattices, and any table of sentences if format="lattices" is given. A cell is
  `[nodes], [edges]`, as the SNIPS lattices are published. A node is `('word', log p, ...)`: the logarithm of the
  probability that this word follows where the path has come to. What stands behind it (the logarithms of the node's
  posterior and of its share in the next node) follows from the first number and is not used. An edge is a pair of
  nodes, which are counted from 0; the first is `<s>`, the last `</s>`. A word that may also be the last has edges to
  other words and to `</s>`, whose number is 0 whatever comes before: an edge to `</s>` has the probability that is
  left. With this rule, the posteriors that follow are the published ones to 1e-4. Any other text in a cell is a
  sentence, and its lattice is the chain of its words: so a machine may learn from transcripts and be asked about
  lattices.

Labels may also stand in a second file, of names and labels.

**Words become numbers by a hash of 31 bits** that depends on the word alone (`HashedSymbols`), so that chunks, files
and machines agree without a table that would have to grow and to be kept with the model, and words that training never
saw are no special case. `words` is a table of the names met so far, for whoever wants to see them. With `symbols=`, a
file of words and numbers, a word that it does not have is an error, and lattices of numbers are read as those of the
words; the hash of the word is its number in the batch all the same. Without it, a number is a word like any other, but
0 is the empty word in a lattice of numbers. Marks of where a sentence begins and ends are read as the empty word.

Costs are divided by their sum in logarithms, so that the paths of each lattice have probabilities that sum to 1: costs
of lattices are known up to a constant, and in the thousands. Weights of the real semiring, probabilities of confusion
networks among them, are read as they are.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dotadd.automata.draft import Draft, Numbering, Options
from dotadd.automata.files import MANY, draft_of, format_of, records
from dotadd.automata.symbols import EPSILON_NAME, HashedSymbols, SymbolTable
from dotadd.data.batches import Strings
from dotadd.errors import DataError, DotaddError
from dotadd.sources.base import Chunk
from dotadd.sources.delimited import DelimitedFile
from dotadd.sources.files import FileSource
from dotadd.sources.labels import label_table, without
from dotadd.sources.lattice_rows import LatticeRows
from dotadd.sources.text import Piece, after_last_line, fields_of, first_lines, pieces

SILENT = {"<s>", "</s>", "!SENT_START", "!SENT_END", "!NULL"}
NO_ACTS = "null"
BEGINNING = 1 << 20  # of a table is looked at for the column of lattices
ROUNDING = 1e-3  # by which the probabilities behind a node may be off
_NODE = re.compile(r"""\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*,\s*([^\s,()\[\]]+)\s*(?:,[^()\[\]'"]*)?\)""")
_EDGE = re.compile(r"\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)")
_NEXT, _CLOSE = re.compile(r"\s*,\s*"), re.compile(r"\s*\]\s*")


@dataclass
class LatticeFile(FileSource):
    """One file of lattices. `label`, `column` and `weight` are columns of a table; `label` is else a dialogue act."""

    label: str | int | None = field(default=None, kw_only=True)
    labels: str | None = field(default=None, kw_only=True)
    column: str | int | None = field(default=None, kw_only=True)
    weight: str | int | None = field(default=None, kw_only=True)
    symbols: str | None = field(default=None, kw_only=True)
    semiring: str = field(default="log", kw_only=True)
    words: HashedSymbols = field(default_factory=HashedSymbols, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._options = Options(self.semiring)

    def files(self) -> list[str]:
        return [path for path in (self.path, self.labels, self.symbols) if path is not None]

    def read(self, nbytes: int) -> Iterator[Chunk]:
        numbering = Numbering(self.words, None if self.symbols is None else SymbolTable.read(self.symbols))
        format = self._format()
        if format is None:
            yield from self._cells(self._table(), nbytes, numbering)
            return
        for name in ("column", "weight"):
            if getattr(self, name) is not None:
                raise DotaddError(f"{name}= is for tables, and {self.path} is none")
        yield from self._records(format, nbytes, numbering)

    def _format(self) -> str | None:
        """The format of the automata, None if the file is a table. What is neither is an archive with a mistake."""
        beginning = first_lines(self.path)
        format = format_of(beginning)
        if format in MANY:
            return format
        suffixes = {suffix.lower().removeprefix(".") for suffix in Path(self.path).suffixes}
        first, second, *_ = [*(line for line in beginning.split(b"\n") if line.strip()), b"", b""]
        counts = [(first.count(delimiter), second.count(delimiter)) for delimiter in (b",", b";", b"\t")]
        if not suffixes.isdisjoint({"csv", "tsv", "tab"}) or any(n == m > 0 for n, m in counts):
            return None
        return next((name for name in MANY if name in suffixes), "kaldi")

    def _add(self, rows: LatticeRows, draft: Draft, numbering: Numbering) -> None:
        """Put one more lattice to the rows: the acceptor of its words."""
        words = draft.on_outputs().outputs
        if not SILENT.isdisjoint(words):
            draft.inputs = draft.outputs = [EPSILON_NAME if word in SILENT else word for word in words]
        rows.append(draft, numbering)

    def _records(self, format: str, nbytes: int, numbering: Numbering) -> Iterator[Chunk]:
        label_of = self._label_of(format)
        labelled: bool | None = None
        for piece in pieces(self.path, nbytes, _CUTS.get(format, after_last_line), self.on_progress, self.largest):
            rows = LatticeRows()
            words: list[str] = []
            lines: list[int] = []
            complaints: dict[int, str] = {}
            for record in records(_lines(piece, self.path), format):
                try:
                    draft = draft_of(record, self.path, format, self._options, numbering.known)
                    self._add(rows, draft, numbering)
                except DataError as error:
                    self.bad_row(error)
                    continue
                word = label_of(draft)
                if word is None and labelled is not False and self.labels is not None:
                    complaints[len(lines)] = f"{draft.name!r} has no label in {self.labels}"
                labelled = word is not None or self.labels is not None if labelled is None else labelled
                words.append(word or "")
                lines.append(draft.line)
            if not lines:
                continue
            batch, found = rows.batch(self.words)
            labels = words if labelled else None
            chunk = Chunk(batch, None, None, 0, self.path, np.array(lines, np.int64), words=labels)
            yield without(self, chunk, complaints | found if labelled else found)

    def _label_of(self, format: str) -> Callable[[Draft], str | None]:
        if self.labels is not None:
            table = label_table(self.labels)
            return lambda draft: table.get(draft.name)
        if format != "wcn":
            if self.label is not None:
                raise DotaddError(
                    f"label= is for tables and dialogue acts; {self.path} has its labels before the names"
                )
            return lambda draft: draft.label
        asked = self.label
        if asked is None:
            return lambda draft: NO_ACTS if draft.label == "" else draft.label
        return lambda draft: None if draft.label is None else "1" if _has_act(draft.label, str(asked)) else "-1"

    def _cells(self, table: DelimitedFile, nbytes: int, numbering: Numbering) -> Iterator[Chunk]:
        for chunk in table.read(nbytes):
            if not isinstance(chunk.batch, Strings):
                raise DataError(f"column {table.column!r} holds numbers, and neither lattices nor text", self.path)
            assert chunk.lines is not None
            lattices, rows = LatticeRows(), []
            for row, line in enumerate(chunk.lines.tolist()):
                try:
                    draft = _cell_draft(chunk.batch[row].decode(), self.path, line)
                    self._add(lattices, draft, numbering)
                    rows.append(row)
                except DataError as error:
                    self.bad_row(error)
            if rows:
                batch, found = lattices.batch(self.words)
                taken = dataclasses.replace(chunk.take(np.array(rows, np.int64)), batch=batch)
                yield without(self, taken, found)

    def _table(self) -> DelimitedFile:
        """The table that the file is. Without a column, that of the lattices is looked for."""
        if self.labels is not None:
            raise DotaddError("labels= has no meaning for tables of lattices, which have a column of labels")
        beginning = first_lines(self.path, BEGINNING).decode("utf-8-sig", "replace")
        header = beginning.partition("\n")[0]
        format = "tsv" if "\t" in header and "," not in header else "csv"
        column = self.column
        if column is None:
            delimiter = "\t" if format == "tsv" else max(",;", key=header.count)
            column = _lattice_column(beginning, delimiter, (self.label or "label", self.weight))
        if column is None:
            raise DataError("which column holds the lattices? Name it with column=", self.path)
        return DelimitedFile(
            self.path, format=format, column=column, label=self.label, weight=self.weight,
            on_bad_row=self.on_bad_row, skipped=self.skipped, on_progress=self.on_progress, largest=self.largest,
        )  # fmt: skip


def _lattice_column(beginning: str, delimiter: str, others: tuple[object, ...]) -> str | None:
    """The first column whose cell begins like a list of nodes, or else the only one of text."""
    try:
        header, end = fields_of(beginning, delimiter, cut=True)
        cells, _ = fields_of(beginning, delimiter, end, cut=True)
    except ValueError:
        return None
    names = [name.strip() for name in header]
    free = [(name, cell) for name, cell in zip(names, cells, strict=False) if name not in others]
    found = [name for name, cell in free if cell.strip().startswith("[(")]
    texts = [name for name, cell in free if not cell.strip().removeprefix("-").replace(".", "", 1).isdecimal()]
    return found[0] if found else texts[0] if len(texts) == 1 else None


def _lines(piece: Piece, path: str) -> Iterator[tuple[int, str]]:
    """The lines of a piece, numbered as in the file."""
    data = bytes(piece.letters)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = piece.line + data.count(b"\n", 0, error.start)
        raise DataError("is not UTF-8 text; convert it, for example with iconv", path, line) from None
    return enumerate(text.removeprefix("\ufeff").split("\n"), piece.line)


def _after_last_block(buffer: bytearray, have: int) -> int:
    """Behind the last blank line."""
    ends = ((buffer.rfind(blank, 0, have), len(blank)) for blank in (b"\n\n", b"\n\r\n"))
    return max((at + length for at, length in ends if at >= 0), default=0)


def _before_last_mesh(buffer: bytearray, have: int) -> int:
    """Where the last network begins: with its name, or where networks have none, with the number of places."""
    named = buffer.startswith(b"name ") or buffer.find(b"\nname ", 0, have) >= 0
    return buffer.rfind(b"\nname " if named else b"\nnumaligns ", 0, have) + 1


_CUTS = {"kaldi": _after_last_block, "mesh": _before_last_mesh}


def _has_act(acts: str, asked: str) -> bool:
    return any(act == asked or act.startswith(f"{asked}-") for act in (acts or NO_ACTS).split(";"))


def _cell_draft(cell: str, path: str | None, line: int) -> Draft:
    """The lattice of a cell."""
    if not cell.startswith("[("):
        return _chain(cell.split(), path, line)
    found, at = _items(_NODE, cell, 1, "('word', log p, ...)", path, line)
    comma = _NEXT.match(cell, at)
    if comma is None or cell[comma.end() : comma.end() + 1] != "[":
        raise DataError("expected a list of edges after the nodes: [('<s>', 0), ...], [(0, 1), ...]", path, line)
    edges, at = _items(_EDGE, cell, comma.end() + 1, "(node, node)", path, line)
    if at < len(cell):
        raise DataError(f"expected nothing after the edges, but there is {cell[at : at + 20]!r}", path, line)
    words = [_word(node) for node in found]
    logs = [_log(node[3], path, line) for node in found]
    return _lattice(words, logs, [(int(edge[1]), int(edge[2])) for edge in edges], path, line)


def _lattice(words: list[str], logs: list[float], edges: list[tuple[int, int]], path: str | None, line: int) -> Draft:
    end = len(words) - 1
    if (words[0], words[end]) != ("<s>", "</s>"):
        raise DataError(f"the nodes begin with <s> and end with </s>, and not {words[0]} and {words[end]}", path, line)
    for edge in edges:
        if max(edge) > end:
            raise DataError(
                f"the edge {edge} leads to node {max(edge)}, which is missing: there are {end + 1}", path, line
            )
    left: dict[int, float] = defaultdict(lambda: 1.0)
    for source, target in edges:
        left[source] -= math.exp(logs[target]) if target != end else 0.0
    draft = Draft(path, line, costs=False, start=0, finals={end: 1.0})
    draft.outputs = draft.inputs
    for source, target in edges:
        probability = left[source] if target == end else math.exp(logs[target])
        if probability < -ROUNDING:
            message = f"the probabilities of what follows node {source} sum to {1.0 - probability:.4g}"
            raise DataError(message, path, line)
        draft.sources.append(source)
        draft.targets.append(target)
        draft.inputs.append(words[target])
        draft.weights.append(max(0.0, probability))
        draft.lines.append(line)
    return draft


def _chain(words: list[str], path: str | None, line: int) -> Draft:
    n = len(words)
    draft = Draft(path, line, costs=False, start=0, finals={n: 1.0})
    draft.sources, draft.targets = list(range(n)), list(range(1, n + 1))
    draft.inputs = draft.outputs = words
    draft.weights, draft.lines = [1.0] * n, [line] * n
    return draft


def _items(
    pattern: re.Pattern[str], cell: str, at: int, what: str, path: str | None, line: int
) -> tuple[list[re.Match[str]], int]:
    """The items of a list that begins at a place behind its bracket, and the place behind the list."""
    found: list[re.Match[str]] = []
    while True:
        item = pattern.match(cell, at)
        if item is None:
            raise DataError(f"expected {what}, but there is {cell[at : at + 20]!r}", path, line)
        found.append(item)
        closed = _CLOSE.match(cell, item.end())
        if closed is not None:
            return found, closed.end()
        comma = _NEXT.match(cell, item.end())
        if comma is None:
            raise DataError(f"expected a comma or a bracket, but there is {cell[item.end() :][:20]!r}", path, line)
        at = comma.end()


def _word(node: re.Match[str]) -> str:
    word = re.sub(r"\\(.)", r"\1", node[1] if node[1] is not None else node[2])
    return "_".join(word.split()) or EPSILON_NAME


def _log(text: str, path: str | None, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"{text!r} is not a number", path, line) from None
    if not value <= ROUNDING:
        raise DataError(f"{text} is not the logarithm of a probability", path, line)
    return value
