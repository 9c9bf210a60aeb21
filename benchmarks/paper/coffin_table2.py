"""COFFIN's table 2 on human chromosome 19: seconds and auPRC by the number of examples and the representation of w.

C = 1, hinge loss, a relative duality gap of 0.01. "all, s" is `dotadd train` from the start of its process to its end,
reading and saving included, with what has to be compiled once a machine compiled before; "training, s" is the part
between. Memory is the peak of the process. The paper's figures stand beside, its 10^7 beside all of ours: LL, COFFIN in
LIBLINEAR, beside dcd; OC, COFFIN in OCAS, beside ocas, and beside dcd where there is no LL. A minus is a run that the
paper does not have: with 16 bits one of its cutting planes took 1.4 GB. LIBLINEAR itself, on the features written out
as a matrix, is the second table.

    python -m benchmarks.paper.coffin_table2 [--sizes 1e4,all] [--rows d8,oc_d8] [--write docs/results.md] [--tiny]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.paper import coffin, materialized
from benchmarks.paper.coffin import Data, Features, Table, Trained, tell


@dataclass(frozen=True)
class Row:
    """A row of the table, and what the paper has in it: seconds and auPRC for each size."""

    features: Features
    tiny: Features
    method: str
    paper: dict[int | None, tuple[int, float]]
    solver: str = "dcd"
    peer: bool = True  # whether LIBLINEAR is tried on its features


SIZES: tuple[int | None, ...] = (10**4, 10**5, 10**6, None)
TINY_SIZES: tuple[int | None, ...] = (400, None)
PEER_SIZES = 10**5  # and up to here it fits into memory
OC_DENSE = {10**4: (167, 0.1000), 10**5: (948, 0.2857), 10**6: (9952, 0.4384), None: (131202, 0.5326)}
ROWS = {
    "d8": Row(Features(8), Features(3, order=3), "OC, d = 8, dense", OC_DENSE),
    "oc_d8": Row(Features(8), Features(3, order=3), "OC, d = 8, dense", OC_DENSE, "ocas", peer=False),
    "d20_12": Row(
        Features(20, 12),
        Features(6, 6, order=3),
        "LL, d = 20, 12 bits",
        {10**4: (61, 0.1059), 10**5: (360, 0.3159), 10**6: (3783, 0.4597), None: (25902, 0.5417)},
    ),
    "oc_d20_12": Row(
        Features(20, 12),
        Features(6, 6, order=3),
        "OC, d = 20, 12 bits",
        {10**4: (65, 0.1081), 10**5: (435, 0.3180), 10**6: (5349, 0.4612), None: (76311, 0.5431)},
        solver="ocas",
        peer=False,
    ),
    "d20_16": Row(
        Features(20, 16),
        Features(6, 8, order=3),
        "LL, d = 20, 16 bits",
        {10**4: (111, 0.1052), 10**5: (604, 0.3169), 10**6: (4590, 0.4626), None: (44232, 0.5456)},
        peer=False,
    ),
    "oc_d20_16": Row(
        Features(20, 16),
        Features(6, 8, order=3),
        "OC, d = 20, 16 bits",
        {10**4: (363, 0.1066), 10**5: (1430, 0.3190), 10**6: (10288, 0.4643)},
        solver="ocas",
        peer=False,
    ),
}
COLUMNS = ["features", "solver", "windows", "all, s", "training, s", "passes", "gap", "peak, GB", "auPRC"]
COLUMNS += ["paper", "paper, s", "paper, auPRC", "paper, s / all, s"]
PEERS = ["features", "windows", "program", "matrix, s", "training, s", "both / dotadd", "peak, GB"]
PEERS += ["objective", "auPRC"]


@dataclass(frozen=True)
class Cell:
    """One training run; its model is kept where LIBLINEAR is to be compared with it."""

    row: Row
    features: Features
    size: int | None
    trained: Trained
    auprc: float
    model: Path

    @property
    def windows(self) -> str:
        return count(self.size)

    @property
    def compared(self) -> bool:
        return self.row.peer and self.trained.rows <= PEER_SIZES


def count(size: int | None) -> str:
    return "all" if size is None else f"{size:,}"


def measure(data: Data, names: Sequence[str], sizes: Sequence[int | None]) -> Iterator[Cell]:
    """Train and score, row after row."""
    for name in names:
        row = ROWS[name]
        features = row.tiny if data.tiny else row.features
        tell(f"{features}, {row.solver}: compiling")
        coffin.warm(data, features, row.solver)
        for size in sizes:
            windows, model = data.train(size), data.folder / f"{name}_{size}.dotadd"
            tell(f"{features}, {row.solver}: training on {count(size)} windows")
            trained = coffin.train(windows, features, model, row.solver)
            tell(f"{features}: {trained.wall:.1f} s, {trained.peak / 1e9:.2f} GB; scoring the held-out windows")
            cell = Cell(row, features, size, trained, coffin.auprc(model, data.test), model)
            if not cell.compared:
                model.unlink()
            yield cell


def cells_of(cell: Cell) -> list[str]:
    """A line of the first table."""
    trained = cell.trained
    line = [
        str(cell.features),
        cell.row.solver,
        cell.windows,
        f"{trained.wall:,.1f}",
        f"{trained.seconds:,.1f}",
        str(trained.passes),
        f"{trained.gap:.4f}",
        f"{trained.peak / 1e9:.2f}",
        f"{cell.auprc:.4f}",
    ]
    if cell.features != cell.row.features or cell.size not in SIZES:
        return [*line, "", "", "", ""]
    if cell.size not in cell.row.paper:
        return [*line, cell.row.method, "-", "-", ""]
    seconds, area = cell.row.paper[cell.size]
    return [*line, cell.row.method, f"{seconds:,}", f"{area:.4f}", f"**{seconds / trained.wall:,.0f}x**"]


@dataclass(frozen=True)
class Compared:
    """LIBLINEAR beside a cell; without figures where it could not be run."""

    cell: Cell
    found: materialized.Materialized | str
    auprc: float | None


def compare(data: Data, cells: Sequence[Cell]) -> Iterator[Compared]:
    """LIBLINEAR on the features of these cells."""
    for cell in cells:
        tell(f"{cell.features}: LIBLINEAR on {cell.windows} windows")
        output = cell.model.with_suffix(".liblinear.dotadd")
        found = materialized.run(data.train(cell.size), cell.model, output)
        yield Compared(cell, found, None if isinstance(found, str) else coffin.auprc(output, data.test))


def peers_of(compared: Compared) -> Iterator[list[str]]:
    """Two lines of the second table."""
    cell, found = compared.cell, compared.found
    trained, start = cell.trained, [str(cell.features), cell.windows]
    ours = ["", f"{trained.seconds:,.1f}", "", f"{trained.peak / 1e9:.2f}", f"{trained.primal:.5g}"]
    yield [*start, "dotadd", *ours, f"{cell.auprc:.4f}"]
    if isinstance(found, str):
        yield [*start, "LIBLINEAR", found, "", "", "", "", ""]
        return
    assert compared.auprc is not None
    yield [
        *start,
        "LIBLINEAR",
        f"{found.materialize:,.1f}",
        f"{found.seconds:,.1f} (-e {found.epsilon:g})",
        f"**{(found.materialize + found.seconds) / trained.seconds:,.1f}x**",
        f"{found.peak / 1e9:.2f}",
        f"{found.objective:.5g} ({found.objective / found.ours - 1.0:+.2%})",
        f"{compared.auprc:.4f}",
    ]


def main(
    *, tiny: bool = False, names: Sequence[str], sizes: Sequence[int | None] | None = None, page: Path | None = None
) -> None:
    """Both tables, printed as they come and kept in the page."""
    sizes = sizes or (TINY_SIZES if tiny else SIZES)
    keys = [
        (str(row.tiny if tiny else row.features), row.solver, count(size))
        for row in ROWS.values()
        for size in (*SIZES[:-1], *TINY_SIZES)
    ]
    with tempfile.TemporaryDirectory() as folder:
        data = Data(Path(folder), tiny)
        kept = []
        table = Table("coffin_table2", COLUMNS, keys, page)
        for cell in measure(data, names, sizes):
            table.add(*cells_of(cell))
            if cell.compared:
                kept.append(cell)
        if kept:
            print()
            peers = [(features, size, program) for features, _, size in keys for program in ("dotadd", "LIBLINEAR")]
            table = Table("coffin_liblinear", PEERS, peers, page)
            for compared in compare(data, kept):
                for line in peers_of(compared):
                    table.add(*line)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a few hundred simulated windows")
    parser.add_argument("--sizes", help="numbers of windows, such as 1e4,1e5,1e6,all")
    parser.add_argument("--rows", default=",".join(ROWS), help="some of %(default)s")
    parser.add_argument("--write", type=Path, help="a page with marks for the tables, to be kept up to date")
    arguments = parser.parse_args()
    names = arguments.rows.split(",")
    if unknown := sorted(set(names) - set(ROWS)):
        parser.error(f"there is no row {unknown[0]}; choose among {', '.join(ROWS)}")
    try:
        sizes = [coffin.size_of(size) for size in arguments.sizes.split(",")] if arguments.sizes else None
    except ValueError:
        parser.error(f"--sizes {arguments.sizes}: numbers or all, with commas between them")
    main(tiny=arguments.tiny, names=names, sizes=sizes, page=arguments.write)
