"""dotadd variants: what the variants of a VCF file do to the scores of a model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from dotadd._util.atomic import require_writable
from dotadd.cli.options import Count, Seed, Whole, whole
from dotadd.cli.progress import Bar
from dotadd.cli.screen import Json, duration, facts, write_json
from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from dotadd.genome.variants import Scored, Scorer


def variants(
    calls: str,
    /,
    *,
    fasta: Annotated[list[str], Parameter(consume_multiple=True, negative="")],
    model: str,
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    model_donor: str | None = None,
    signal: Literal["acceptor", "donor"] = "acceptor",
    before: Whole | None = None,
    before_donor: Whole | None = None,
    distance: Count = 50,
    random: Annotated[int, whole(0, 10_000_000)] = 10_000,
    seed: Seed = 0,
    name: str = "DOTADD",
    jobs: Whole | None = None,
    as_json: Json = False,
) -> None:
    """Score the variants of a VCF file by what they change.

    With a model of gapped k-mers (Gkm, LS-GKM): deltaSVM, the sum of the weights of
    all l-mers of ALT that touch the variant less those of REF, as DOTADD_DELTA.

    With a model of splice sites: the largest gain and loss of a site within
    --distance, on both strands, as DOTADD_GAIN, DOTADD_LOSS and their positions;
    with models of acceptors and donors as DOTADD_SPLICE, which has the ten fields of
    SpliceAI. Scores are differences of margins, or of probabilities where the model
    has them (dotadd calibrate). DOTADD_Q is the share of random changes of single
    letters that score less.

    Variants are trimmed and left-aligned first, so that equal ones score alike
    however they are written. What cannot be scored is counted, with the reason.
    All else in the file stays as it was. Sorted .vcf.gz is indexed (.tbi).

    Examples:

        dotadd variants calls.vcf.gz --fasta genome.fa --model peaks.dotadd
            -o scored.vcf.gz
        dotadd variants calls.vcf.gz --fasta genome.fa --model acceptor.dotadd
            --model-donor donor.dotadd -o scored.vcf.gz

    Parameters
    ----------
    calls
        The variants: VCF, plain or compressed, or BCF (needs pysam: pip install 'dotadd[genomics]').
    fasta
        The genome, one file or several; .gz, .bz2 and .xz are read directly. Chromosome 1 is chr1.
    model
        The model: of gapped k-mers, or of the windows of a signal.
    output
        The file to write: .vcf, .vcf.gz or .bcf.
    model_donor
        A second model, of donors; the first is one of acceptors then.
    signal
        What the windows of the model stand around, if it is one alone.
    before
        Letters of a window before the two of the signal, as in training; by default 59 of 141 for acceptors, 80 of 141
        for donors.
    before_donor
        The same for the model of donors.
    distance
        How far from a variant sites are looked at, in letters.
    random
        So many random changes are scored for DOTADD_Q; 0 for none.
    seed
        Decides which.
    name
        What the names of the INFO fields begin with.
    jobs
        Threads; all cores by default.
    """
    from dotadd.genome.files import Genome
    from dotadd.genome.variants import output_kind, score_variants

    output_kind(output)
    require_writable(output)
    if not name.isidentifier() or not name.isascii():
        raise DotaddError(f"--name {name!r} is no beginning of a name: give letters, digits and _")
    if model_donor is not None and signal != "acceptor":
        raise DotaddError("--model is of acceptors where there is a --model-donor; leave out --signal")
    if model_donor is None and before_donor is not None:
        raise DotaddError("--before-donor is about --model-donor, which is not given")
    names = ", ".join(Path(one).name for one in (model, model_donor) if one is not None)
    windows: list[tuple[str, str, int | None]] = [(model, signal, before)]
    if model_donor is not None:
        windows.append((model_donor, "donor", before_donor))
    with Bar("weighing l-mers") as bar:
        scorer = _scorer(windows, distance, name, jobs, bar)
    with Bar("scoring variants") as bar:
        started = time.perf_counter()
        found = score_variants(
            calls, Genome(fasta), scorer, output,
            model_names=names, name=name, random=random, seed=seed, n_jobs=jobs, on_progress=bar,
        )  # fmt: skip
    seconds = time.perf_counter() - started
    if as_json:
        skipped = {why: count for count, why in found.skipped()}
        told = {name: getattr(found, name) for name in ("lines", "alleles", "scored", "random")}
        told |= {"skipped": skipped, "indexed": not found.not_indexed, "not_indexed": found.not_indexed or None}
        write_json(told | {"file": output, "seconds": seconds})
    else:
        _tell(found, output, seconds)


def _scorer(windows: list[tuple[str, str, int | None]], distance: int, name: str, jobs: int | None, bar: Bar) -> Scorer:
    """What these models can do: each is a file, with the signal and the layout of its windows if it has any."""
    from dotadd.genome.deltasvm import DeltaSVM
    from dotadd.genome.splicing import SiteModel, Splicing
    from dotadd.model.linear import load
    from dotadd.model.lmer_weights import lmer_map

    models = [load(path) for path, _, _ in windows]
    counting = [path for model, (path, _, _) in zip(models, windows, strict=True) if lmer_map(model) is not None]
    if counting and len(models) > 1:
        raise DotaddError(f"{counting[0]}: the model counts k-mers wherever they stand; give no --model-donor with it")
    if counting:
        return DeltaSVM(models[0], counting[0], name=name, n_jobs=jobs, on_progress=bar)
    sites = [SiteModel(model, *window) for model, window in zip(models, windows, strict=True)]
    return Splicing(sites, distance=distance, name=name)


def _tell(found: Scored, output: str, seconds: float) -> None:
    skipped = ", ".join(f"{count:,} {why}" for count, why in found.skipped())
    facts(
        {
            "lines": f"{found.lines:,} with {found.alleles:,} ALTs",
            "scored": f"{found.scored:,}, {found.scored / seconds:,.0f} a second",
            "skipped": skipped or "none",
            "random": f"{found.random:,} changes of a letter to compare with" if found.random else "none",
            "index": f"none: {found.not_indexed}" if found.not_indexed else "written",
            "written": output,
            "time": duration(seconds),
        }
    )
