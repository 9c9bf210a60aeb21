"""COFFIN's figure 1 on human chromosome 19: auPRC and training time by the number of bits of the hash.

100,000 windows, a weighted degree map of degree 20 with so many bits for each position and degree, and the two weighted
spectra, which are not hashed; C = 1, a relative duality gap of 0.01. The paper used OCAS here.

    python -m benchmarks.paper.coffin_figure1 [--bits 2,4,6] [--write docs/results.md] [--draw F.svg] [--tiny]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.paper import coffin
from benchmarks.paper.coffin import Data, Features, Table, Trained, tell
from dotadd._util.atomic import replacing

SIZE, TINY_SIZE = 100_000, 400
BITS, TINY_BITS = tuple(range(2, 20, 2)), (2, 6)  # at 20 bits w would have 12 GB
COLUMNS = ["bits", "weights", "w, MB", "training, s", "passes", "gap", "peak, GB", "auPRC"]


@dataclass(frozen=True)
class Point:
    bits: int
    trained: Trained
    auprc: float


def measure(data: Data, bits: Sequence[int]) -> Iterator[Point]:
    """Train and score with each number of bits."""
    windows, model = data.train(TINY_SIZE if data.tiny else SIZE), data.folder / "model.dotadd"
    for number in bits:
        features = Features(6, number, order=3) if data.tiny else Features(20, number)
        tell(f"{features}: training")
        if number == bits[0]:
            coffin.warm(data, features)  # one set of kernels for all
        trained = coffin.train(windows, features, model)
        tell(f"{features}: {trained.wall:.1f} s; scoring the held-out windows")
        yield Point(number, trained, coffin.auprc(model, data.test))


def cells_of(point: Point) -> list[str]:
    """A line of the table."""
    trained = point.trained
    return [
        str(point.bits),
        f"{trained.slots:,}",
        f"{4e-6 * trained.slots:,.1f}",
        f"{trained.seconds:.1f}",
        str(trained.passes),
        f"{trained.gap:.4f}",
        f"{trained.peak / 1e9:.2f}",
        f"{point.auprc:.4f}",
    ]


def draw(points: Sequence[Point], path: Path) -> None:
    """Both curves over the bits, each with its own axis, as in the paper."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    bits = [point.bits for point in points]
    with rc_context({"svg.hashsalt": "dotadd"}):  # the same points give the same file
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        area = figure.subplots()
        time = area.twinx()
        axes = [
            (area, "auPRC on the held-out windows", "tab:blue", "o-", [point.auprc for point in points]),
            (time, "training, seconds", "tab:red", "s--", [point.trained.seconds for point in points]),
        ]
        for axis, label, colour, style, values in axes:
            axis.plot(bits, values, style, color=colour)
            axis.set_ylabel(label, color=colour)
            axis.tick_params(axis="y", colors=colour)
            axis.set_ylim(0.0, 1.1 * max(values))
            axis.spines["top"].set_visible(False)
        area.set_xticks(bits)
        area.set_xlabel("bits of the hash")
        with replacing(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})


def main(
    *, tiny: bool = False, bits: Sequence[int] | None = None, page: Path | None = None, picture: Path | None = None
) -> None:
    """The table, printed as it comes and kept in the page, and the picture."""
    with tempfile.TemporaryDirectory() as folder:
        data = Data(Path(folder), tiny)
        table = Table("coffin_figure1", COLUMNS, [(str(number),) for number in range(33)], page)
        points = []
        for point in measure(data, bits or (TINY_BITS if tiny else BITS)):
            table.add(*cells_of(point))
            points.append(point)
    if picture is not None:
        draw(points, picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a few hundred simulated windows")
    parser.add_argument("--bits", help="numbers of bits, such as 8,10,12")
    parser.add_argument("--write", type=Path, help="a page with marks for the table, to be kept up to date")
    parser.add_argument("--draw", type=Path, help="the picture, as SVG")
    arguments = parser.parse_args()
    try:
        bits = [int(number) for number in arguments.bits.split(",")] if arguments.bits else None
    except ValueError:
        parser.error(f"--bits {arguments.bits}: whole numbers with commas between them")
    main(tiny=arguments.tiny, bits=bits, page=arguments.write, picture=arguments.draw)
