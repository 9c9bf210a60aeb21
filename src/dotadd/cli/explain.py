"""dotadd explain: what letters, words, columns and features add to the scores of rows."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from dotadd._util.atomic import require_writable
from dotadd.cli.options import Count, Reading, Whole, tell_skipped
from dotadd.cli.progress import Bar
from dotadd.cli.screen import Json, facts, label_text, number, shortened, show_table, write_json
from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from dotadd.explain.explanation import ExplainedRow
    from dotadd.model.file import Record
    from dotadd.sources.base import Source

SHOWN = 10  # rows on a screen, in a picture and on a page
FOR = ("rgb(255,229,204)", "rgb(255,178,102)", "rgb(255,128,0)")
AGAINST = ("rgb(204,229,255)", "rgb(128,190,255)", "rgb(64,150,255)")


def explain(
    model: str,
    /,
    *data: str,
    output: Annotated[str | None, Parameter(name=["--output", "-o"])] = None,
    method: Literal["auto", "features", "matching", "ism"] = "auto",
    target: Annotated[str | None, Parameter(name="--class")] = None,
    largest: Annotated[Count, Parameter(show_default=True)] = 10,
    rows: Annotated[Count | None, Parameter(show_default=False)] = None,
    jobs: Whole | None = None,
    as_json: Json = False,
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Show why rows have their scores: which letters, words or columns made them.

    What a feature adds to a score is its weight times its value. That is shared
    out evenly over the letters, or the column, that it was made of, so that all of
    it and the intercept sum to the score. On the screen, text is coloured: orange
    speaks for the class, blue against it; and the features that add most follow.

    The name of OUTPUT tells the format:

        .npz     what letters add, (rows, letters, positions), as TF-MoDISco reads
                 it; the sequences themselves stand beside it in .onehot.npz
        .bw      a track of a genome, where FASTA headers are like chr1:100-250(-);
                 needs pybigtools: pip install 'dotadd[genomics]'
        .tsv     a line a letter, or of text and tables a line a feature
        .jsonl   everything, one JSON object a row
        .svg     sequences as logos
        .html    a page

    Examples:

        dotadd explain spam.dotadd mails.csv --rows 3
        dotadd explain spam.dotadd mails.csv -o why.html
        dotadd explain peaks.dotadd peaks.fa -o peaks.npz
        dotadd explain sites.dotadd sites.fa --method ism -o sites.svg

    Parameters
    ----------
    model
        The model file, also one of LS-GKM.
    data
        One or more files, as for predictions; labels are not needed.
    output
        The file to write; the screen by default.
    method
        "features" shares out features over their letters; "matching", for gapped k-mers, what pairs of l-mers add over
        the letters that they have in common, as gkmexplain does; "ism" is in-silico mutagenesis, the change of the
        score with each other letter at each position. By default "matching" for gapped k-mers and otherwise "features";
        "ism" where nobody knows where features come from, as in kernel machines.
    target
        The class whose score to explain; by default the second of two, and the predicted one of several.
    largest
        Name so many features of each row.
    rows
        Explain so many first rows; by default 10 on the screen and in .svg and .html, and all otherwise.
    jobs
        Threads; all cores by default.
    """
    from dotadd.genome.explained import ending, present_path, write_explanation
    from dotadd.model.explanation import explain as explain_rows
    from dotadd.model.linear import load

    if not data:
        raise DotaddError("give a data file to explain")
    kind = None if output is None else ending(output)
    if output is not None:
        require_writable(output)
        if kind == ".npz":
            require_writable(present_path(output))
    loaded = load(model)
    if rows is None and kind in (None, ".svg", ".html"):
        rows = SHOWN
    source = _opened(data, reading, loaded.read_as)
    with Bar("explaining") as bar:
        found = explain_rows(
            loaded, source, method=method, target=target, largest=largest, rows=rows, n_jobs=jobs, on_progress=bar
        )
    tell_skipped(source)
    if output is None and as_json:
        write_json({"method": found.method, "rows": list(found.to_dicts())})
        return
    if output is None:
        for row in found:
            show(row)
        return
    title = f"{os.path.basename(model)} on {os.path.basename(data[0])}"
    written = write_explanation(found, output, title)
    if as_json:
        write_json({"method": found.method, "explained": len(found), "written": written})
        return
    facts({"explained": f"{len(found):,} rows by {found.method}", "written": ", ".join(written)})


def _opened(data: tuple[str, ...], reading: Reading, read_as: Record) -> Source:
    """The source; of FASTA with the names of its sequences."""
    from dotadd.sources.fasta import NAME, FastaFile
    from dotadd.sources.files import ManyFiles

    source = reading.open(data, read_as=read_as)
    parts = source.parts if isinstance(source, ManyFiles) else [source]
    fasta = all(isinstance(part, FastaFile) for part in parts)
    return reading.open(data, read_as=read_as, ids=[NAME]) if fasta else source


def show(row: ExplainedRow) -> None:
    """A row for people: its text, coloured where the screen has colours, and what adds most."""
    from rich.console import Console
    from rich.text import Text

    from dotadd.explain.html import segments

    console = Console(file=sys.stdout, highlight=False)
    label, title = label_text(row.label), shortened(row.title)
    line = f"{title}: score {number(row.score)} of class {label}, intercept {number(row.intercept)}"
    console.print(Text(line, "bold"), soft_wrap=True)
    for column, found in row.texts.items():
        shown = Text()
        shown.append(f"{shortened(column)}: " if column else "", "dim")
        for text, strong in segments(found, len(FOR)):
            color = (FOR if strong > 0 else AGAINST)[abs(strong) - 1]
            shown.append(text, f"black on {color}" if strong else "")
        console.print(shown, soft_wrap=True)
    if row.elsewhere:
        console.print(Text(f"features whose place is not known add {number(row.elsewhere)}"), soft_wrap=True)
    if row.columns:
        ordered = sorted(row.columns.items(), key=lambda item: -abs(item[1]))
        show_table(("column", "adds"), [(name, number(value, 4)) for name, value in ordered])
    if row.features:
        numbers = [
            (feature.name, number(feature.value, 4), number(feature.weight, 4), number(feature.contribution, 4))
            for feature in row.features
        ]
        show_table(("feature", "value", "weight", "adds"), numbers)
