"""How cost and accuracy grow with the number of windows, from 500 to every position of human chromosome 19.

The lecture's table "More data helps" has thirteen numbers of human acceptor windows, from 500 to 10^7. Here stand as
many windows around AG of chromosome 19, as far as it has them, and then windows around every position of both strands,
true acceptors against everything else: weighted degree features of degree 20 in 12 bits and two weighted spectra of
degree 8, C = 1, hinge loss, a relative duality gap of 0.01, all cores. Samples lie in an Arrow file, 141 letters each;
the last line of each kind is all windows, as places in the genome, which is in memory once.

"training, s" is the part between reading and saving, "all, s" the whole process, and memory its peak, compiling apart;
where all windows are trained on, they include the evaluation of those that are held out.
The exponent is that of training time since the line before: 1 is as much longer as there are more windows. Areas are on
the held-out windows: 1.77 x 10^6 around AG, 2.2 x 10^7 around every position. The lecture's windows are others, with
one true site among 94, so that its areas are no goal; that they grow in the same way is what is to be seen.

    python -m benchmarks.paper.coffin_growth [--only AG,every] [--sizes 1e4,all] [--write docs/results.md]
        [--draw docs/coffin_growth.svg] [--tiny]
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.paper import coffin
from benchmarks.paper.coffin import Data, Features, Table, Trained, tell
from dotadd._util.atomic import replacing
from dotadd.model import evaluation

LECTURE = {
    500: (0.7555, 0.0394), 1000: (0.7986, 0.0622), 5000: (0.9049, 0.1507), 10_000: (0.9283, 0.2525),
    30_000: (0.9477, 0.3476), 50_000: (0.9552, 0.4106), 100_000: (0.9614, 0.4761), 200_000: (0.9657, 0.5304),
    500_000: (0.9693, 0.5909), 1_000_000: (0.9719, 0.6351), 2_000_000: (0.9736, 0.6704), 5_000_000: (0.9754, 0.7047),
    None: (0.9767, 0.7246),
}  # fmt: skip
SIZES: dict[str, tuple[int | None, ...]] = {"AG": tuple(LECTURE), "every": (10**4, 10**5, 10**6, 10**7, None)}
TINY_SIZES: tuple[int | None, ...] = (400, 800)
FEATURES, TINY_FEATURES = Features(20, 12), Features(6, 6, order=3)
COLUMNS = ["positions", "windows", "all, s", "training, s", "passes", "gap", "peak, GB", "exponent", "auROC", "auPRC"]
COLUMNS += ["lecture, auROC", "lecture, auPRC"]
DRAWN = ("windows", "training, s", "peak, GB", "auROC", "auPRC")


@dataclass(frozen=True)
class Point:
    """A training run, and its areas on the held-out windows."""

    positions: str  # AG or every
    size: int | None
    trained: Trained
    auroc: float
    auprc: float


def measure(positions: str, sizes: Sequence[int | None], *, tiny: bool) -> Iterator[Point]:
    """Train on so many windows, and score the held-out ones."""
    features = TINY_FEATURES if tiny else FEATURES
    with tempfile.TemporaryDirectory() as folder:
        data = Data(Path(folder), tiny, every=positions == "every")
        tell(f"{positions}: compiling")
        coffin.warm(data, features)
        for size in sizes:
            tell(f"{positions}: training on {size or 'all'} windows")
            model = data.folder / "model.dotadd"
            if size is None:
                trained = coffin.train(whole(positions), features, model)
            else:
                windows = data.train(size)
                trained = coffin.train(windows, features, model)
                windows.unlink()
            tell(f"{positions}: {trained.wall:.1f} s, {trained.peak / 1e9:.2f} GB; scoring the held-out windows")
            truth, scores = coffin.scored(model, data.held_out)
            model.unlink()
            yield Point(positions, size, trained, evaluation.auroc(truth, scores), evaluation.auprc(truth, scores))


def whole(positions: str) -> list[str]:
    """Options of `dotadd train` for all windows."""
    fasta, gff = coffin.files()
    options = ["--fasta", str(fasta), "--gff", str(gff), "--signal", "acceptor", "--holdout", "0.2"]
    return [*options, "--every"] if positions == "every" else options


def exponent(point: Point, before: Point) -> float:
    """By which power of the number of windows training took longer than with fewer."""
    time = point.trained.seconds / before.trained.seconds
    return math.log(time) / math.log(point.trained.rows / before.trained.rows)


def cells_of(point: Point, before: Point | None) -> list[str]:
    """A line of the table."""
    trained = point.trained
    lecture = LECTURE.get(point.size) if point.positions == "AG" else None
    return [
        point.positions,
        f"{trained.rows:,}",
        f"{trained.wall:,.1f}",
        f"{trained.seconds:,.1f}",
        str(trained.passes),
        f"{trained.gap:.4f}",
        f"{trained.peak / 1e9:.2f}",
        "" if before is None else f"{exponent(point, before):.2f}",
        f"{point.auroc:.4f}",
        f"{point.auprc:.4f}",
        *(["", ""] if lecture is None else [f"{area:.4f}" for area in lecture]),
    ]


def draw(table: Table, path: Path) -> None:
    """Training time and memory over the number of windows, and the areas, of all lines of the table; logarithmic, but
    for the areas."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "dotadd"}):  # the same points give the same file
        figure = Figure(figsize=(9.6, 3.4), layout="constrained")
        time, memory, areas = figure.subplots(1, 3)
        for positions, colour in (("AG", "tab:blue"), ("every", "tab:red")):
            lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.rows.values()]
            mine = [dict(zip(COLUMNS, line, strict=False)) for line in lines if line[0] == positions]
            columns = {name: [float(line[name].replace(",", "")) for line in mine] for name in DRAWN}
            order = sorted(range(len(mine)), key=columns["windows"].__getitem__)
            rows, seconds, peak, auroc, auprc = ([columns[name][at] for at in order] for name in DRAWN)
            label = "around AG" if positions == "AG" else "around every position"
            time.plot(rows, seconds, "o-", color=colour, label=label)
            memory.plot(rows, peak, "o-", color=colour)
            areas.plot(rows, auprc, "o-", color=colour)
            areas.plot(rows, auroc, "s--", color=colour)
        for axis, title in ((time, "training, seconds"), (memory, "peak, GB"), (areas, "auROC (dashed) and auPRC")):
            axis.set_xscale("log")
            axis.set_xlabel("windows")
            axis.set_title(title, fontsize="medium")
            axis.spines[["top", "right"]].set_visible(False)
        for axis in (time, memory):
            axis.set_yscale("log")
        areas.set_ylim(0.0, 1.0)
        time.legend(frameon=False, fontsize="small")
        with replacing(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})


def main(
    *,
    tiny: bool = False,
    only: Sequence[str] = tuple(SIZES),
    sizes: Sequence[int | None] | None = None,
    page: Path | None = None,
    picture: Path | None = None,
) -> None:
    """The table, printed as it comes and kept in the page, and the picture."""
    keys = [(positions, f"{size:,}") for positions, some in SIZES.items() for size in some if size is not None]
    table = Table("coffin_growth", COLUMNS, keys, page)
    for positions in only:
        before = None
        for point in measure(positions, sizes or (TINY_SIZES if tiny else SIZES[positions]), tiny=tiny):
            table.add(*cells_of(point, before))
            before = point
    if picture is not None:
        draw(table, picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a few hundred simulated windows")
    parser.add_argument("--only", default=",".join(SIZES), help="some of %(default)s")
    parser.add_argument("--sizes", help="numbers of windows, such as 1e4,1e5,all")
    parser.add_argument("--write", type=Path, help="a page with marks for the table, to be kept up to date")
    parser.add_argument("--draw", type=Path, help="the picture, as SVG")
    arguments = parser.parse_args()
    only = arguments.only.split(",")
    if unknown := sorted(set(only) - set(SIZES)):
        parser.error(f"--only {unknown[0]}: choose among {', '.join(SIZES)}")
    try:
        sizes = [coffin.size_of(size) for size in arguments.sizes.split(",")] if arguments.sizes else None
    except ValueError:
        parser.error(f"--sizes {arguments.sizes}: numbers or all, with commas between them")
    main(tiny=arguments.tiny, only=only, sizes=sizes, page=arguments.write, picture=arguments.draw)
