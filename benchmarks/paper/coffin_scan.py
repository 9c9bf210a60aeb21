"""Scanning a chromosome: places a second, for each kind of track, and what the whole human genome would take.

A model of 10^5 windows around AG (weighted degree features of degree 20 in 12 bits and two weighted spectra of degree
8) scores human chromosome 19: every AG on both strands, and every position of one strand and of both. A run is the
command `dotadd scan` in a process of its own, on all cores, from the FASTA file to the finished track; "scoring, s" is
what the command says it took: all but starting, with what has to be compiled once a machine compiled before. The
chromosome twice in one file shows what a longer genome takes: one sequence is in memory, and for a moment the next one.

The lecture's headline is a prediction at 2 x 3 x 10^9 positions. "whole genome, min" is what 3.1 x 10^9 letters would
take at this speed: an extrapolation from chromosome 19 by its letters, not a measurement.

    python -m benchmarks.paper.coffin_scan [--write docs/results.md] [--tiny]
"""

from __future__ import annotations

import argparse
import json
import lzma
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.paper import coffin
from benchmarks.paper.coffin import ROOT, Data, Features, Table, tell

GENOME = 3.1e9  # letters
WINDOWS, FEATURES = 10**5, Features(20, 12)
TINY_WINDOWS, TINY_FEATURES, TINY_LETTERS = 400, Features(6, 6, order=3), 30_000
COLUMNS = ["positions", "track", "chromosome", "scored", "written", "scoring, s", "places a second", "peak, GB"]
COLUMNS += ["whole genome, min"]

SCAN = """
import sys
from dotadd.cli import run
code = run(["scan", *sys.argv[1:]])
from benchmarks.memory import peak
print(peak())
sys.exit(code)
"""


@dataclass(frozen=True)
class Track:
    """What is scored, and where it is written."""

    positions: str
    name: str
    options: tuple[str, ...] = ()
    copies: int = 1


EVERY = ("--every",)
TRACKS = (
    Track("AG", "scores.bedgraph"),
    Track("AG", "scores.bed"),
    Track("AG", "scores.bw"),
    Track("AG", "scores.bedgraph", copies=2),
    Track("every, +", "scores.bedgraph", (*EVERY, "--strand", "+")),
    Track("every, +", "scores.bw", (*EVERY, "--strand", "+")),
    Track("every, both strands", "scores.bed", EVERY),
)


def chromosome(folder: Path, copies: int, *, tiny: bool) -> tuple[Path, int]:
    """A FASTA file of it, so many times, and how many letters it has."""
    path = folder / f"chromosome_{copies}.fa"
    if tiny:
        letters = np.random.default_rng(0).choice(np.frombuffer(b"ACGT", np.uint8), TINY_LETTERS).tobytes().decode()
    else:
        with lzma.open(coffin.files()[0], "rt") as file:
            letters = file.read().partition("\n")[2].replace("\n", "")
    path.write_text("".join(f">copy{copy}\n{letters}\n" for copy in range(copies)))
    return path, copies * len(letters)


def scan(model: Path, fasta: Path, track: Track, folder: Path) -> tuple[dict[str, float], int]:
    """What `dotadd scan` says of a run, and the peak of its memory."""
    output = folder / track.name
    given = [str(fasta), "--model", str(model), "--signal", "acceptor", "-o", str(output), "--json", *track.options]
    done = subprocess.run([sys.executable, "-c", SCAN, *given], cwd=ROOT, capture_output=True, text=True, check=True)
    output.unlink()
    told, _, peak = done.stdout.rstrip().rpartition("\n")
    return json.loads(told), int(peak)


def main(*, tiny: bool = False, page: Path | None = None, tracks: Sequence[Track] = TRACKS) -> None:
    """The table, printed as it comes and kept in the page."""
    keys = [(track.positions, track.name.partition(".")[2], str(track.copies)) for track in TRACKS]
    table = Table("coffin_scan", COLUMNS, keys, page)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, data = folder / "model.dotadd", Data(folder, tiny)
        tell("training")
        windows = data.train(TINY_WINDOWS if tiny else WINDOWS)
        coffin.train(windows, TINY_FEATURES if tiny else FEATURES, model)
        short, _ = chromosome(folder, 1, tiny=True)
        for track in tracks:
            tell(f"{track.positions}, {track.name}: compiling")
            scan(model, short, track, folder)
            fasta, letters = chromosome(folder, track.copies, tiny=tiny)
            tell(f"{track.positions}, {track.name}: scanning")
            told, peak = scan(model, fasta, track, folder)
            seconds = told["seconds"]
            table.add(
                track.positions,
                track.name.partition(".")[2],
                str(track.copies),
                f"{told['positions']:,}",
                f"{told['written']:,}",
                f"{seconds:,.1f}",
                f"**{told['positions'] / seconds:,.0f}**",
                f"{peak / 1e9:.2f}",
                f"{seconds / letters * GENOME / 60:.1f}",
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a short random sequence")
    parser.add_argument("--write", type=Path, help="a page with marks for the table, to be kept up to date")
    arguments = parser.parse_args()
    main(tiny=arguments.tiny, page=arguments.write)
