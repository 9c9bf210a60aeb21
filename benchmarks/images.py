"""Local binary patterns on demand against precomputed ones.

Images of 60 x 40 pixels, 2,827 non-zeros each in 723,712 slots. Precomputed, they are rows of 32-bit indices without
values, as the authors of COFFIN kept them; on demand, there are only the images. DOT is the output of all images, ADD
the sum of all with a coefficient each, a block what training by coordinate descent asks for: rows in random order,
their indices and values written into a scratch. Nanoseconds for a non-zero with one thread, the best of several runs
that take turns; w is float32, sums are float64. Texture is smooth, as photographs are, and noise is not.

    python -m benchmarks.images [--tiny]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from benchmarks.parallel import best
from dotadd.data.batches import Batch, Images, SparseRows
from dotadd.features import LBP, FeatureMap, Linear, Shape
from dotadd.problem.examples import InMemory

SIZE = (60, 40)
IMAGES = 20_000


def noise(rows: int) -> Images:
    """Gray values that know nothing of each other."""
    return Images(np.random.default_rng(0).integers(0, 256, (rows, *SIZE), np.uint8))


def texture(rows: int) -> Images:
    """Smooth images: sums of noise that is coarse and strong, and noise that is fine and weak."""
    rng = np.random.default_rng(0)
    images = np.zeros((rows, *SIZE), np.float32)
    for grain in (20, 10, 5, 2):
        coarse = rng.normal(size=(rows, SIZE[0] // grain + 2, SIZE[1] // grain + 2)).astype(np.float32)
        images += grain * _stretched(_stretched(coarse, SIZE[0], grain).swapaxes(1, 2), SIZE[1], grain).swapaxes(1, 2)
    low, high = images.min(axis=(1, 2), keepdims=True), images.max(axis=(1, 2), keepdims=True)
    return Images((255 * (images - low) / (high - low)).astype(np.uint8))


def _stretched(images: np.ndarray, length: int, grain: int) -> np.ndarray:
    """Straight lines between the rows of images, which come to lie so far apart."""
    at = np.arange(length) / grain
    before = at.astype(np.int64)
    share = (at - before).astype(np.float32)[:, None]
    return (1 - share) * images[:, before] + share * images[:, before + 1]


def precomputed(phi: FeatureMap, batch: Batch) -> SparseRows:
    """The same features as rows of indices in memory."""
    nonzeros = int(np.max(phi.bound(batch)))
    indices, first = np.empty(len(batch) * nonzeros, np.uint32), 0
    for block, at, _ in InMemory(phi, batch).blocks():
        stop = first + len(at) * nonzeros
        indices[first:stop] = block.indices[: stop - first]
        first = stop
    return SparseRows(np.arange(len(batch) + 1) * nonzeros, indices, None, phi.dim)


def operations(examples: InMemory) -> dict[str, Callable[[], object]]:
    """DOT, ADD and the blocks of all examples."""
    rng = np.random.default_rng(1)
    w = rng.normal(size=examples.dim).astype(np.float32)
    numbers, out = rng.normal(size=len(examples)), np.zeros(examples.dim)
    order = rng.permutation(len(examples))

    def blocks() -> None:
        for _ in examples.blocks(order):
            pass

    return {"DOT": lambda: examples.dot([w]), "ADD": lambda: examples.add([numbers], [out]), "block": blocks}


def measure(batch: Images, seconds: float) -> dict[str, tuple[float, float | None]]:
    """For each operation the seconds on demand, and precomputed where that takes any."""
    phi = LBP().resolve(Shape.of(batch))
    rows = precomputed(phi, batch)
    mine = operations(InMemory(phi, batch))
    theirs = operations(InMemory(Linear().resolve(Shape.of(rows)), rows))
    found: dict[str, tuple[float, float | None]] = {}
    for name in ("DOT", "ADD"):
        on_demand, kept = best([mine[name], theirs[name]], seconds)
        found[name] = on_demand, kept
    return found | {"block": (best([mine["block"]], seconds)[0], None)}


def report(*, tiny: bool = False) -> str:
    """The table, in Markdown."""
    lines = ["| images | operation | ns on demand | ns precomputed | times as long |", "|---|---|---|---|---|"]
    for make in (texture, noise):
        batch = make(50 if tiny else IMAGES)
        nonzeros = len(batch) * LBP().resolve(Shape.of(batch)).pixels
        for name, (on_demand, kept) in measure(batch, 0.0 if tiny else 3.0).items():
            cells = [make.__name__, name, f"{1e9 * on_demand / nonzeros:.2f}"]
            cells += ["", ""] if kept is None else [f"{1e9 * kept / nonzeros:.2f}", f"{on_demand / kept:.2f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    print(report(tiny=parser.parse_args().tiny))
