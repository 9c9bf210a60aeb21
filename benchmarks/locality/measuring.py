"""What the experiments share: windows, maps, a w in memory, the clock and the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from time import thread_time

import numpy as np

from benchmarks import datasets
from dotadd import WeightedDegree
from dotadd.data.batches import Strings
from dotadd.features.base import FeatureMap, Shape
from dotadd.features.kmer_layout import KmerLayout
from dotadd.problem.examples import CACHE_LINE

DEGREE = 20
FOLDER = datasets.FOLDER / "human_chr19"


@dataclass(frozen=True)
class Setting:
    """The windows with their signs, and how much of everything is done."""

    windows: Strings
    signs: np.ndarray
    bits: tuple[int, ...]
    repeat: int
    many: tuple[int, ...]
    """Windows that meet a standing w in one call."""
    few: int
    """Windows that are visited one by one."""
    trained: int
    """Windows that w knows before the pass of the block method."""
    passed: int
    """Windows that it goes over."""
    sizes: tuple[int, ...]
    """Windows in its blocks."""
    whole: tuple[int, ...]
    """Windows of a whole training."""


def setting(tiny: bool, rows: int | None, repeat: int | None) -> Setting:
    """Real windows, unless the experiment is tiny or there are none."""
    rows = rows or (400 if tiny else 400_000)
    if tiny or not FOLDER.exists():
        from dotadd.genome.simulate import splice_windows

        windows, y = splice_windows(rows, positives=0.05)
    else:
        from dotadd.genome.windows import Windows

        source = Windows(FOLDER / "chr19.fa.xz", FOLDER / "chr19.gff3.xz", signal="acceptor", sample=rows)
        chunk = source.load()
        assert isinstance(chunk.batch, Strings)
        windows, y = chunk.batch, chunk.y
    signs = np.where(y > 0, 1.0, -1.0)
    if tiny:
        return Setting(windows, signs, (6, 8), repeat or 1, (64, 128, 256), 32, 100, 300, (16, 32), (300, rows))
    many, whole = (4096, 16384, 65536), (100_000, rows)
    return Setting(windows, signs, (12, 16), repeat or 5, many, 4096, 20_000, 100_000, (128, 256, 512), whole)


class Laid(WeightedDegree):
    """Weighted degree features whose tables lie otherwise: other fields of the KmerLayout than the map would choose."""

    def __init__(self, phi: WeightedDegree, **changed: int) -> None:
        self.__dict__.update(phi.__dict__)
        self.changed = changed

    def layout(self) -> KmerLayout:
        return replace(super().layout(), **self.changed)


def weighted_degree(bits: int, batch: Strings, **changed: int) -> FeatureMap:
    """The map of the experiments; `changed` are fields of its KmerLayout."""
    phi = WeightedDegree(DEGREE).hashed(bits).resolve(Shape.of(batch))
    assert isinstance(phi, WeightedDegree)
    return Laid(phi, **changed) if changed else phi


def some_rows(count: int, batch: Strings) -> np.ndarray:
    """So many rows in random order, or all."""
    return np.random.default_rng(0).permutation(len(batch))[:count]


def weights(dim: int) -> np.ndarray:
    """A w that begins with a line of the cache, and whose pages exist: fresh zeros would all share one page."""
    room = np.empty(dim + CACHE_LINE // 4, np.float32)
    first = -room.ctypes.data % CACHE_LINE // 4
    w = room[first : first + dim]
    np.random.default_rng(0).random(dtype=np.float32, out=w)
    return w


def in_turn(
    runs: Mapping[str, Callable[[], object]], repeat: int, clock: Callable[[], float] = thread_time
) -> dict[str, float]:
    """Seconds of each, the best of several. They take turns, so that a slow moment of the machine is shared by all."""
    for run in runs.values():
        run()  # compiles
    best = dict.fromkeys(runs, np.inf)
    for _ in range(repeat):
        for name, run in runs.items():
            began = clock()
            run()
            best[name] = min(best[name], clock() - began)
    return best


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
