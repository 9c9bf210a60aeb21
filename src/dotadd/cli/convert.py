"""dotadd convert and dotadd windows: data that can be read, or windows cut out of a genome, as one Arrow file."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from dotadd._util.atomic import replacing, require_writable
from dotadd.cli.options import Reading, Real, Whole, tell_skipped
from dotadd.cli.progress import Bar
from dotadd.cli.screen import facts
from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from dotadd.genome.windows import Windows


def convert(
    data: str,
    output: str,
    /,
    *,
    pack: Annotated[bool | None, Parameter(negative="--no-pack")] = None,
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Convert data to an Arrow file, which reads much faster than text.

    The file is Arrow IPC, or Parquet if its name ends so, compressed where that
    makes it smaller. Windows of DNA of one length are packed, four letters a
    byte, unless --no-pack is given.

    Examples:

        dotadd convert a9a a9a.arrow
        dotadd convert sites.fasta.gz sites.arrow
        dotadd convert mails.csv mails.parquet --column text --label spam

    Parameters
    ----------
    data
        The file to read, or a quoted pattern such as "part-*.csv".
    output
        The file to write.
    pack
        Pack DNA in two bits a letter; by default where every letter is one of ACGT and all rows are equally long.
    """
    from dotadd.sources.convert import convert as convert_source
    from dotadd.sources.files import FileSource

    require_writable(output)
    source = reading.open([data])
    with Bar(f"converting {data}") as bar:
        if isinstance(source, FileSource):
            source.on_progress = bar
        converted = convert_source(source, output, dna=pack)
    tell_skipped(source)
    facts({"rows": f"{converted.rows:,}", "bytes": f"{converted.bytes:,}", "file": output})


def windows(
    *,
    fasta: Annotated[list[str], Parameter(consume_multiple=True, negative="")],
    gff: str,
    signal: Literal["acceptor", "donor"],
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    length: Whole = 141,
    before: Whole | None = None,
    holdout: Real = 0.0,
    holdout_output: str | None = None,
    stretch: Whole = 1_000_000,
    sample: Whole | None = None,
    seed: Whole = 0,
) -> None:
    """Cut the windows around all candidate splice sites out of a genome.

    Every AG (acceptor) or GT (donor) on both strands is a candidate. Those at the
    end (beginning) of an annotated intron are true sites with label 1, all others
    decoys with label -1. Windows are read in the direction of their strand.
    Windows with a letter other than ACGT, or over the end of a sequence, are left
    out and counted.

    The columns are sequence, label, chromosome, position and strand. Position is
    that of the leftmost of the two letters on the forward strand, counted from 1.

    Examples:

        dotadd windows --fasta chr19.fa.xz --gff chr19.gff3.xz --signal acceptor
            --holdout 0.2 -o acceptor.arrow
        dotadd train acceptor.arrow --features "WeightedDegree(20).hashed(12)"
            -o acceptor.dotadd
        dotadd evaluate acceptor.dotadd acceptor.holdout.arrow

    Parameters
    ----------
    fasta
        The genome, one file or several; .gz, .bz2 and .xz are read directly.
    gff
        Its annotation, GFF3 or GTF.
    signal
        The sites to look for.
    output
        The Arrow file to write (Parquet if the name ends so).
    length
        Letters of a window.
    before
        Letters before the two of the signal; by default 59 of 141 for acceptors, 80 of 141 for donors.
    holdout
        Share of the genome to hold out for testing, in whole stretches; no letter is in both files.
    holdout_output
        The file for the held-out windows; by default out.holdout.arrow for out.arrow.
    stretch
        About how many letters a stretch has.
    sample
        Draw so many of the windows at random; held-out windows are always written in full.
    seed
        Decides which stretches are held out and which windows are drawn.
    """
    from dotadd.genome.windows import Windows
    from dotadd.sources.convert import is_parquet, write

    if holdout_output is not None and not holdout:
        raise DotaddError("--holdout-output needs --holdout, the share of the genome to hold out")
    train = Windows(
        fasta, gff, signal=signal, length=length, before=before, sample=sample, seed=seed,
        holdout=holdout, stretch=stretch, part="train" if holdout else "all",
    )  # fmt: skip
    written = {output: train}
    if holdout:
        held = holdout_output or str(Path(output).with_suffix(f".holdout{Path(output).suffix}"))
        if Path(held).resolve() == Path(output).resolve():
            raise DotaddError(f"{held} cannot hold both parts; give another --holdout-output")
        written[held] = train.held_out()
    for path in written:
        is_parquet(path)  # or refused
        require_writable(path)
    with ExitStack() as stack:  # both files appear, or neither
        for path, part in written.items():
            temporary = stack.enter_context(replacing(path))
            with Bar(f"cutting {path}") as part.on_progress:
                write(part, temporary, parquet=is_parquet(path))
    facts(_summary(written))


def _summary(written: dict[str, Windows]) -> dict[str, str]:
    """What was cut, and what was not."""
    (output, first), *rest = written.items()
    counts = [part.counts for part in written.values()]
    dropped = [
        (sum(count.dropped.unknown for count in counts), "with a letter other than ACGT"),
        (sum(count.dropped.off_end for count in counts), "over the end of a sequence"),
        (sum(count.dropped.border for count in counts), "over the border of a held-out stretch"),
    ]
    reads = "last letters are not AG" if first.signal == "acceptor" else "first letters are not GT"
    told = {
        "sequences": f"{first.counts.sequences:,}, {first.counts.not_annotated:,} of them without annotation",
        "introns": f"{first.counts.introns:,}",
        "not canonical": f"{first.counts.not_canonical:,} sites whose {reads}; not used as true sites",
        "dropped": ", ".join(f"{number:,} {why}" for number, why in dropped if number) or "none",
        "written": f"{_size(first)} to {output}",
    }
    for path, part in rest:
        told["held out"] = f"{_size(part)} to {path}"
    return told


def _size(part: Windows) -> str:
    drawn = " drawn" if part.sample is not None else ""
    return f"{part.counts.windows:,} windows{drawn}, {part.counts.true:,} true sites and {part.counts.decoys:,} decoys"
