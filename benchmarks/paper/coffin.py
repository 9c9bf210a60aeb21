"""What the scripts of COFFIN's section 3.1 share: windows, features, one training run, and tables that grow.

The windows are those of 141 letters around every AG of human chromosome 19, in the folder DOTADD_DATA, cut as
`dotadd windows --signal acceptor --holdout 0.2` does. A fifth of the chromosome, in whole stretches, is for testing.
A run is the command `dotadd train` in a process of its own; its model is scored on all held-out windows.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

import dotadd
from benchmarks import datasets
from dotadd._util.atomic import replacing
from dotadd.genome import simulate
from dotadd.genome.windows import Windows
from dotadd.model import evaluation
from dotadd.sources.base import Source
from dotadd.sources.convert import convert

ROOT = Path(__file__).parents[2]
FOLDER = datasets.FOLDER / "human_chr19"
TOLERANCE = 0.01  # of the relative duality gap
WARM_ROWS = 12_000  # enough for every kernel of the real runs to be compiled

# After training, so that what it needs itself counts for nothing.
TRAIN = """
import sys
from dotadd.cli import run
code = run(["train", *sys.argv[1:]])
from benchmarks.memory import peak
print(peak())
sys.exit(code)
"""


@dataclass(frozen=True)
class Features:
    """A weighted degree map over the window, hashed or not, and weighted spectra left and right of its AG.

    Each is scaled to length one, so that none outweighs the others.
    """

    degree: int
    bits: int | None = None
    order: int = 8  # of the spectra

    @property
    def expression(self) -> str:
        hashed = "" if self.bits is None else f".hashed({self.bits})"
        maps = [f"WeightedDegree({self.degree}){hashed}"]
        maps += [f"WeightedSpectrum({self.order}, span={span})" for span in ((0, 59), (61, 141))]
        return " + ".join(f"{phi}.normalized()" for phi in maps)

    def __str__(self) -> str:
        return f"d = {self.degree}, " + ("explicit" if self.bits is None else f"{self.bits} bits")


def files() -> tuple[Path, Path]:
    """The genome and its annotation."""
    return datasets.existing(FOLDER / "chr19.fa.xz"), datasets.existing(FOLDER / "chr19.gff3.xz")


class Data:
    """The windows as Arrow files in a folder, cut when they are first asked for; simulated ones if tiny.

    `every` takes every position of both strands, and not only AG.
    """

    def __init__(self, folder: Path, tiny: bool, *, every: bool = False) -> None:
        self.folder, self.tiny = folder, tiny
        if not tiny:
            self._whole = Windows(*files(), signal="acceptor", part="train", holdout=0.2, seed=0, every=every)

    def train(self, size: int | None) -> Path:
        """So many windows to train on, drawn at random from all; None is all."""
        path = self.folder / f"train_{size or 'all'}.arrow"
        if path.exists():
            return path
        if self.tiny:
            return _simulated(path, size or 800, seed=1)
        some = replace(self._whole, sample=size)
        some.genome, some.annotation = self._whole.genome, self._whole.annotation  # read once
        convert(some, path)
        return path

    @property
    def held_out(self) -> Source:
        """The windows to test with, as a source."""
        return dotadd.open(self.test) if self.tiny else self._whole.held_out()

    @property
    def test(self) -> Path:
        path = self.folder / "test.arrow"
        if not path.exists():
            if self.tiny:
                return _simulated(path, 1000, seed=2)
            convert(self._whole.held_out(), path)
        return path

    @property
    def warm(self) -> Path:
        """Windows to compile with."""
        path = self.folder / "warm.arrow"
        return path if path.exists() else _simulated(path, 100 if self.tiny else WARM_ROWS, seed=3)


def _simulated(path: Path, rows: int, seed: int) -> Path:
    convert(dotadd.open(*simulate.splice_windows(rows, positives=0.1, seed=seed)), path)
    return path


@dataclass(frozen=True)
class Trained:
    """A run of `dotadd train`. `wall` is the whole process: starting, reading, training, saving."""

    solver: str
    rows: int
    slots: int
    wall: float
    seconds: float  # of training alone
    passes: int
    gap: float
    primal: float
    dual: float
    peak: int  # bytes


def train(data: Path | Sequence[str], features: Features, model: Path, solver: str = "dcd") -> Trained:
    """Train in a process of its own, which saves the model, on a file or on what these options say."""
    given = [str(data)] if isinstance(data, Path) else data
    run = [sys.executable, "-c", TRAIN, *given, "-o", str(model), "--features", features.expression]
    run += ["--solver", solver, "--tol", str(TOLERANCE), "--quiet"]
    began = perf_counter()
    done = subprocess.run(run, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    wall = perf_counter() - began
    loaded = dotadd.load(model)
    record = loaded.training
    return Trained(
        record["solver"], record["rows"], loaded.phi.dim, wall, sum(record["seconds"].values()), record["passes"],
        record["gap"], record["primal"][0], record["dual"][0], int(done.stdout.split()[-1]),
    )  # fmt: skip


def warm(data: Data, features: Features, solver: str = "dcd") -> None:
    """Have everything compiled that training with these features needs."""
    model = data.folder / "warm.dotadd"
    train(data.warm, features, model, solver)
    model.unlink()


def auprc(model: Path, test: Path) -> float:
    """Area under the precision-recall curve on the windows of a file."""
    return evaluation.auprc(*scored(model, dotadd.open(test)))


def scored(model: Path, windows: Source) -> tuple[np.ndarray, np.ndarray]:
    """Which of the windows are true sites, and what the model makes of each."""
    found = [(chunk.y > 0, scores) for chunk, scores in dotadd.load(model).decision_chunks(windows)]
    truth, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return truth, scores


class Table:
    """A Markdown table, printed row by row.

    With a page, it also replaces what stands there between the marks `<!-- name -->` and `<!-- /name -->`. Rows
    are told apart by their first cells, as many as a key in `order` has; rows of an earlier run that this one does not
    measure again stay.
    """

    def __init__(self, name: str, columns: Sequence[str], order: Sequence[tuple[str, ...]], page: Path | None) -> None:
        self.name, self.order, self.page = name, list(order), page
        self.head = [_line(columns), "|---" * len(columns) + "|"]
        self.rows: dict[tuple[str, ...], str] = {}
        if page is not None:
            for line in self._place(page.read_text(encoding="utf-8"))[0].splitlines()[3:]:  # its head may be an old one
                self.rows[self._key(line)] = line
        print("\n".join(self.head), flush=True)

    def add(self, *cells: str) -> None:
        line = _line(cells)
        self.rows[self._key(line)] = line
        print(line, flush=True)
        if self.page is not None:
            text = self.page.read_text(encoding="utf-8")
            rows = sorted(self.rows, key=self._turn)
            table = "\n".join([*self.head, *(self.rows[key] for key in rows)])
            start, end = self._place(text).span()
            with replacing(self.page) as temporary:
                temporary.write_text(f"{text[:start]}\n{table}\n{text[end:]}", encoding="utf-8")

    def _turn(self, key: tuple[str, ...]) -> float:
        """Where its row stands: one that is not in the order comes behind those that begin alike."""
        if key in self.order:
            return self.order.index(key)
        alike = [at for at, other in enumerate(self.order) if other[0] == key[0]]
        return alike[-1] + 0.5 if alike else len(self.order)

    def _key(self, line: str) -> tuple[str, ...]:
        return tuple(cell.strip() for cell in line.split("|")[1 : 1 + len(self.order[0])])

    def _place(self, text: str) -> re.Match[str]:
        """What stands between the marks."""
        found = re.search(rf"(?<=<!-- {self.name} -->).*?(?=<!-- /{self.name} -->)", text, flags=re.DOTALL)
        if found is None:
            raise SystemExit(f"{self.page} has no place for the table: <!-- {self.name} --> and <!-- /{self.name} -->")
        return found


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def size_of(text: str) -> int | None:
    """A number of windows as the command line has it; None is all."""
    return None if text == "all" else int(float(text))


def with_section(page: Path | None, section: str) -> None:
    """Put a section at the end of the page, unless there is one with its heading."""
    heading = section.partition("\n")[0]
    if page is not None and heading not in (text := page.read_text(encoding="utf-8")).splitlines():
        with replacing(page) as temporary:
            temporary.write_text(f"{text.rstrip()}\n\n{section}", encoding="utf-8")


def tell(message: str) -> None:
    """How far we are, for the person who waits."""
    sys.stderr.write(f"{message} ...\n")
