"""Scoring variants: how many a second, by COFFIN's model of acceptors and by a table of gapped k-mers.

Random changes of human chromosome 19, nine of ten single letters and the others insertions and deletions of up to five
letters, are scored by two models: acceptors (10^5 windows around AG, weighted degree features of degree 20 in 12 bits
and two weighted spectra of degree 8), each change by the gain and loss of sites within 50 letters on both strands, and
gapped k-mers (`Gkm()`, of simulated sequences), each by the sum over its l-mers. A run is the command `dotadd variants`
in a process of its own, on all cores, from a plain VCF file and a FASTA file to a compressed and indexed VCF file, with
10,000 random changes of single letters to compare with, as by default. "scoring, s" is what the command says it took:
all but starting and reading the model; what has to be compiled once a machine is compiled before.

    python -m benchmarks.paper.coffin_variants [--variants 100000] [--write docs/results.md] [--tiny]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.paper import coffin, coffin_scan, gkm
from benchmarks.paper.coffin import ROOT, Data, Table, tell
from dotadd import LinearSVM
from dotadd.features import Gkm

MODELS = ("acceptors", "gapped k-mers")
COLUMNS = ["model", "variants", "scored", "all, s", "scoring, s", "variants a second", "peak, GB"]
TINY_VARIANTS, INDEL, LONGEST = 300, 0.1, 5
SEQUENCES, TINY_SEQUENCES = 2000, 100

VARIANTS = """
import sys
from dotadd.cli import run
code = run(["variants", *sys.argv[1:]])
from benchmarks.memory import peak
print(peak())
sys.exit(code)
"""


def write_calls(path: Path, letters: np.ndarray, count: int) -> None:
    """A sorted VCF file of random changes where the chromosome has letters, no two at one place."""
    rng = np.random.default_rng(0)
    known = np.isin(letters, np.frombuffer(b"ACGT", np.uint8))
    inside = np.flatnonzero(known[:-LONGEST] & known[LONGEST:])
    places = np.sort(rng.choice(inside, count, replace=False))
    lines = ["##fileformat=VCFv4.2", f"##contig=<ID=copy0,length={len(letters)}>"]
    lines.append("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO")
    others = {letter: "ACGT".replace(letter, "") for letter in "ACGT"}
    for place, kind in zip(places.tolist(), rng.random(count), strict=True):
        ref = chr(letters[place])
        alt = others[ref][rng.integers(3)]
        extra = int(rng.integers(1, LONGEST + 1))
        if kind < INDEL / 2:
            alt = ref + "".join(rng.choice(list("ACGT"), extra))
        elif kind < INDEL:
            ref, alt = letters[place : place + extra + 1].tobytes().decode(), ref
        lines.append(f"copy0\t{place + 1}\t.\t{ref}\t{alt}\t.\t.\t.")
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def score(model: Path, fasta: Path, calls: Path, output: Path) -> tuple[dict[str, float], float, int]:
    """What `dotadd variants` says of a run, the seconds of the whole process, and the peak of its memory."""
    given = [str(calls), "--fasta", str(fasta), "--model", str(model), "-o", str(output), "--json"]
    began = perf_counter()
    run = [sys.executable, "-c", VARIANTS, *given]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
    seconds = perf_counter() - began
    told, _, peak = done.stdout.rstrip().rpartition("\n")
    return json.loads(told), seconds, int(peak)


def train(name: str, folder: Path, *, tiny: bool) -> Path:
    """A model by its name."""
    model = folder / f"{MODELS.index(name)}.dotadd"
    if name == "acceptors":
        windows = Data(folder, tiny).train(coffin_scan.TINY_WINDOWS if tiny else coffin_scan.WINDOWS)
        coffin.train(windows, coffin_scan.TINY_FEATURES if tiny else coffin_scan.FEATURES, model)
    else:
        sequences, y = gkm.simulated(TINY_SEQUENCES if tiny else SEQUENCES)
        phi = Gkm(*(gkm.TINY_KERNEL if tiny else gkm.KERNEL)).normalized()
        LinearSVM(phi, C=1.0, tol=0.01).fit(sequences, y).save(model)
    return model


def main(*, tiny: bool = False, variants: int = 100_000, page: Path | None = None) -> None:
    """The table, printed as it comes and kept in the page."""
    variants = TINY_VARIANTS if tiny else variants
    table = Table("coffin_variants", COLUMNS, [(name, f"{variants:,}") for name in MODELS], page)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fasta, _ = coffin_scan.chromosome(folder, 1, tiny=tiny)
        letters = np.frombuffer(fasta.read_bytes().replace(b"\n", b"").removeprefix(b">copy0"), np.uint8)
        few, calls = folder / "few.vcf", folder / "calls.vcf"
        write_calls(few, letters, TINY_VARIANTS)
        write_calls(calls, letters, variants)
        for kind in MODELS:
            tell(f"{kind}: training")
            model = train(kind, folder, tiny=tiny)
            tell(f"{kind}: compiling")
            score(model, fasta, few, folder / "few.vcf.gz")
            tell(f"{kind}: scoring")
            told, seconds, peak = score(model, fasta, calls, folder / "scored.vcf.gz")
            table.add(
                kind,
                f"{variants:,}",
                f"{told['scored']:,}",
                f"{seconds:.1f}",
                f"{told['seconds']:.1f}",
                f"**{told['scored'] / told['seconds']:,.0f}**",
                f"{peak / 1e9:.2f}",
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a short random sequence")
    parser.add_argument("--variants", type=int, default=100_000)
    parser.add_argument("--write", type=Path, help="a page with marks for the table, to be kept up to date")
    arguments = parser.parse_args()
    main(tiny=arguments.tiny, variants=arguments.variants, page=arguments.write)
