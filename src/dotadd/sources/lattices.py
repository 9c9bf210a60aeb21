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
  left. With this rule, the posteriors that follow are the published ones to 1e-4. Several lines
  are OpenFst's or Kaldi's text, or a confusion network of SRILM's. Any other text in a cell is a sentence, and its
  lattice is the chain of its words: so a machine may learn from transcripts and be asked about lattices.

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dotadd.automata.draft import Draft, Numbering, Options
from dotadd.automata.files import MANY, draft_of, format_of, records
from dotadd.automata.symbols import HashedSymbols, SymbolTable
from dotadd.data.batches import Strings
from dotadd.errors import DataError, DotaddError
from dotadd.sources.base import Chunk
from dotadd.sources.delimited import DelimitedFile
from dotadd.sources.files import FileSource
from dotadd.sources.labels import label_table, without
from dotadd.sources.lattice_cells import cell_draft, put
from dotadd.sources.lattice_rows import LatticeRows
from dotadd.sources.text import Piece, after_last_line, fields_of, first_lines, pieces

NO_ACTS = "null"
BEGINNING = 1 << 20  # of a table is looked at for the column of lattices


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
                    put(rows, draft, numbering)
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
                    draft = cell_draft(chunk.batch[row].decode(), self.path, line)
                    put(lattices, draft, numbering)
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
