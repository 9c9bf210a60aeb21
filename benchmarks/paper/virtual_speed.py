"""DOT and ADD of virtual examples on demand against precomputed ones: figure 2c of COFFIN.

On demand, turned and scaled images are kept, and the move and the local binary patterns are made each time;
precomputed, all virtual examples are rows of 32-bit indices in memory. DOT is the output of all examples, ADD the sum
of all with a coefficient each: nanoseconds of one thread for a non-zero, the best of several runs that take turns.
Images of 60 x 40 pixels, the paper's size, are smooth textures with 2,827 non-zeros each. Those of 24 x 24 are faces
with 601; their w takes 0.6 MB, so that it is at hand for stored indices as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import NamedTuple

import dotadd
from benchmarks import images
from benchmarks.paper import virtual_faces
from benchmarks.paper.coffin import Table, tell
from dotadd.data.batches import Images
from dotadd.features import LBP, Linear, Shape
from dotadd.features.on_demand import OnDemand
from dotadd.problem.examples import InMemory
from dotadd.sources.around import Virtual

ORIGINALS = {"24 x 24": 160, "60 x 40": 40}  # 60,000 and 15,000 examples, 144 and 170 MB of indices
PAPER = {"DOT": 1.85, "ADD": 1.28}
COLUMNS = ["images", "operation", "examples", "ns on demand", "ns precomputed", "times as long", "paper"]


class Found(NamedTuple):
    """Nanoseconds for a non-zero."""

    size: str
    operation: str
    examples: int
    on_demand: float
    precomputed: float


def measure(tiny: bool = False, seconds: float = 12.0) -> Iterator[Found]:
    """Both operations on both sizes."""
    transforms = virtual_faces.TINY_TRANSFORMS if tiny else virtual_faces.TRANSFORMS
    for size, originals in ORIGINALS.items():
        tell(f"DOT and ADD of {size} pixels")
        few = 4 if tiny else originals
        batch = virtual_faces.load(tiny).images.slice(0, few) if size == "24 x 24" else images.texture(few)
        virtual = Virtual(dotadd.open(Images(batch.values)), transforms).load().batch
        phi = LBP().resolve(Shape.of(batch))
        rows = images.precomputed(OnDemand(phi), virtual)
        mine = images.operations(InMemory(OnDemand(phi), virtual))
        theirs = images.operations(InMemory(Linear().resolve(Shape.of(rows)), rows))
        for name in PAPER:
            fastest = _best([mine[name], theirs[name]], 0.0 if tiny else seconds)
            on_demand, kept = (1e9 * one / (len(virtual) * phi.pixels) for one in fastest)
            yield Found(size, name, len(virtual), on_demand, kept)


def _best(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """The least time of the processor that each call took. They take turns, three times at least."""
    times: list[list[float]] = [[] for _ in calls]
    began = process_time()
    while len(times[0]) < 4 or process_time() - began < seconds:
        for call, mine in zip(calls, times, strict=True):
            at = process_time()
            call()
            mine.append(process_time() - at)
    return [min(mine[1:]) for mine in times]


def cells_of(found: Found) -> list[str]:
    """A line of the table."""
    return [
        found.size, found.operation, f"{found.examples:,}", f"{found.on_demand:.2f}", f"{found.precomputed:.2f}",
        f"{found.on_demand / found.precomputed:.2f}x", f"{PAPER[found.operation]}x",
    ]  # fmt: skip


def main(*, tiny: bool = False, page: Path | None = None, pictures: Path | None = None) -> None:
    """The table, printed as it comes and kept in the page."""
    table = Table("virtual_speed", COLUMNS, [(size, name) for size in ORIGINALS for name in PAPER], page)
    for found in measure(tiny):
        table.add(*cells_of(found))
