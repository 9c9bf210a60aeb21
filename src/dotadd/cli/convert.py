"""dotadd convert and dotadd windows: data that can be read, or windows cut out of a genome, as one file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from dotadd._util.atomic import replacing, require_writable
from dotadd._util.compressed import ENDINGS
from dotadd.cli.options import Reading, Real, Whole, tell_skipped
from dotadd.cli.peaks import LENGTH, PeakOptions, draw, letters_held_out, peak_lines, peak_size, site_lines
from dotadd.cli.progress import Bar
from dotadd.cli.screen import Json, facts, write_json
from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from dotadd.genome.peaks import Peaks
    from dotadd.genome.windows import Windows


def convert(
    data: str,
    output: str,
    /,
    *,
    pack: Annotated[bool | None, Parameter(negative="--no-pack")] = None,
    as_json: Json = False,
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
    if as_json:
        write_json(asdict(converted) | {"file": output})
        return
    facts({"rows": f"{converted.rows:,}", "bytes": f"{converted.bytes:,}", "file": output})


def windows(
    *,
    fasta: Annotated[list[str], Parameter(consume_multiple=True, negative="")],
    gff: str | None = None,
    signal: Literal["acceptor", "donor"] | None = None,
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    length: Annotated[Whole | None, Parameter(show_default=False)] = None,
    before: Whole | None = None,
    holdout: Real = 0.0,
    holdout_output: str | None = None,
    stretch: Annotated[Whole | None, Parameter(show_default=False)] = None,
    sample: Whole | None = None,
    seed: Whole = 0,
    on_bad_row: Literal["error", "skip"] = "error",
    as_json: Json = False,
    peaks: PeakOptions = PeakOptions(),  # noqa: B008
) -> None:
    """Cut windows out of a genome: around candidate splice sites, or peaks.

    With --signal, every AG (acceptor) or GT (donor) on both strands is a candidate.
    Those at the end (beginning) of an annotated intron are true sites with label 1,
    all others decoys with label -1. Windows are read in the direction of their
    strand. Windows with a letter other than ACGT, or over the end of a sequence, are
    left out and counted. The columns are sequence, label, chromosome, position and
    strand. Position is that of the leftmost of the two letters on the forward
    strand, counted from 1.

    With --peaks, windows lie around the summits: that of column 10 of narrowPeak, or
    the middle of the interval. For each of them, background is drawn at random on
    the same chromosome: as long, with as many G and C and as many small letters
    (repeats), first within 0.02 and at last within 0.06, on no peak and no N. Peaks
    that no background is found for are left out; all that is left out is counted.
    The columns are sequence, label, name, chromosome, start, end (as in BED) and
    strand. dotadd train --peaks does the same and trains at once.

    Examples:

        dotadd windows --fasta chr19.fa.xz --gff chr19.gff3.xz --signal acceptor
            --holdout 0.2 -o acceptor.arrow
        dotadd train acceptor.arrow --features "WeightedDegree(20).hashed(12)"
            -o acceptor.dotadd
        dotadd evaluate acceptor.dotadd acceptor.holdout.arrow
        dotadd windows --fasta hg38.fa.gz --peaks ctcf.narrowPeak.gz
            --exclude blacklist.bed.gz --test-chromosomes chr8,chr9 -o ctcf.fa.gz

    Parameters
    ----------
    fasta
        The genome, one file or several; .gz, .bz2 and .xz are read directly.
    gff
        Its annotation, GFF3 or GTF.
    signal
        The sites to look for.
    output
        The file to write: Arrow, or Parquet or FASTA (.fa, .fa.gz) if the name ends so.
    length
        Letters of a window, 141 around sites and 300 around peaks by default.
    before
        Letters before the two of the signal; by default 59 of 141 for acceptors, 80 of 141 for donors.
    holdout
        Share of the genome to hold out for testing, in whole stretches; no letter is in both files.
    holdout_output
        The file for the held-out windows; by default out.holdout.arrow for out.arrow.
    stretch
        About how many letters a stretch has, 1,000,000 by default.
    sample
        Draw so many of the windows around sites at random; held-out windows are always written in full.
    seed
        Decides which stretches are held out and which windows are drawn.
    on_bad_row
        Stop at a peak that cannot be used, or leave it out and count it.
    """
    from dotadd.genome.windows import Windows
    from dotadd.genome.writing import require_writable_windows, write_windows

    letters = letters_held_out(stretch, holdout)
    train: Windows | Peaks
    if peaks.peaks is not None:
        unused = {"--gff": gff, "--signal": signal, "--before": before, "--sample": sample}
        for name, value in unused.items():
            if value is not None:
                raise DotaddError(f"{name} means nothing with --peaks")
        size = LENGTH if length is None else length
        train = peaks.source(fasta, holdout, length=size, stretch=letters, seed=seed, on_bad_row=on_bad_row)
        divided = train.divided
    else:
        peaks.refuse_without()
        if gff is None or signal is None:
            raise DotaddError("say what to cut windows around: --gff and --signal for splice sites, or --peaks")
        if on_bad_row != "error":
            raise DotaddError("--on-bad-row is for --peaks")
        train = Windows(
            fasta, gff, signal=signal, length=141 if length is None else length, before=before, sample=sample,
            seed=seed, holdout=holdout, stretch=letters, part="train" if holdout else "all",
            places=False,
        )  # fmt: skip
        divided = bool(holdout)
    if holdout_output is not None and not divided:
        raise DotaddError("--holdout-output needs --holdout, the share of the genome to hold out")
    paths = [output] + [holdout_output or _held_out_name(output)] * divided
    if len({Path(path).resolve() for path in paths}) < len(paths):
        raise DotaddError(f"{paths[1]} cannot hold both parts; give another --holdout-output")
    for path in paths:
        require_writable_windows(path)
    if not isinstance(train, Windows):
        draw(train)
        tell_skipped(train)
    written = dict(zip(paths, [train, train.held_out()] if divided else [train], strict=True))
    with ExitStack() as stack:  # both files appear, or neither
        for path, part in written.items():
            temporary = stack.enter_context(replacing(path))
            with Bar(f"cutting {path}") as part.on_progress:
                write_windows(part, temporary, path)
    if as_json:
        files = [{"file": path, **_counted(part)} for path, part in written.items()]
        write_json({"written": files, "counts": [asdict(part.counts) for part in written.values()]})
    else:
        facts(_summary(written))


def _held_out_name(output: str) -> str:
    """The name with .holdout before its ending, which for a compressed file is two."""
    path = Path(output)
    ending = "".join(path.suffixes[-2:]) if path.suffix.lower() in ENDINGS else path.suffix
    return f"{output.removesuffix(ending)}.holdout{ending}"


def _summary(written: Mapping[str, Windows | Peaks]) -> dict[str, str]:
    """What was cut, and what was not."""
    from dotadd.genome.windows import Windows

    (output, first), *rest = written.items()
    if not isinstance(first, Windows):
        told = peak_lines(first)
    else:
        told = site_lines(first, [part.counts for part in written.values() if isinstance(part, Windows)])
    told["written"] = f"{_size(first)} to {output}"
    for path, part in rest:
        told["held out"] = f"{_size(part)} to {path}"
    return told


def _counted(part: Windows | Peaks) -> dict[str, int]:
    """Windows of a part, and how many of them are true sites or peaks."""
    from dotadd.genome.windows import Windows

    if isinstance(part, Windows):
        return {"windows": part.counts.windows, "positives": part.counts.true}
    return {"windows": len(part.windows), "positives": part.positives}


def _size(part: Windows | Peaks) -> str:
    from dotadd.genome.windows import Windows

    if not isinstance(part, Windows):
        return peak_size(part)
    drawn = " drawn" if part.sample is not None else ""
    return f"{part.counts.windows:,} windows{drawn}, {part.counts.true:,} true sites and {part.counts.decoys:,} decoys"
