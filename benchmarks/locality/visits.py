"""The visits of coordinate descent: DOT of a window, then ADD of the same one, windows in random order.

Only w is far away. Indices are computed before the clock starts, but for the last experiment, and all of them go
through one kernel, so that nothing differs but what the experiment is about.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np

from benchmarks.locality.measuring import Setting, in_turn, some_rows, table, weighted_degree, weights
from dotadd._jit import inner, kernel, prefetch
from dotadd.core.block import Block, row_add, row_dot
from dotadd.features.base import FeatureMap
from dotadd.features.filling import Filling, Picked

CHANGE = 1e-6  # what is added: some number that does not run away
NEAR = 64  # features ahead in the same window
SHORT = 3  # times as many runs of these, which are short
LAYOUTS: list[tuple[str, dict[str, int]]] = [
    ("a table for each order", {"group": 1}),
    ("two orders on half a line", {"group": 2}),
    ("**four orders on a line**", {}),
    ("four on a line, the short orders hashed too", {"explicit": 0}),
]


class Variant(NamedTuple):
    """What one run of visits reads and writes."""

    indices: np.ndarray
    values: np.ndarray
    w: np.ndarray
    ahead: int = 0


def layouts(given: Setting) -> str:
    """The slots of the longer orders: on lines of their own, or together with those of the same k-mers continued."""
    found = []
    for bits in given.bits:
        w = weights(weighted_degree(bits, given.windows).dim)
        indices = {name: expanded(weighted_degree(bits, given.windows, **changed), given) for name, changed in LAYOUTS}
        found.append(_measured({name: Variant(*pair, w) for name, pair in indices.items()}, given.repeat))
        lines = {name: f"{lines_of(pair[0]):,.0f}" for name, pair in indices.items()}
        found.insert(-1, {name: [cell] for name, cell in lines.items()})
    head = [f"{what}, {bits} bits" for bits in given.bits for what in ("lines a window", "DOT", "DOT and ADD")]
    return table(["layout", *head], [[name, *(cell for part in found for cell in part[name])] for name in found[0]])


def memory(given: Setting) -> str:
    """The layout of the library, and other ways to the same slots: prefetched, on other pages, in float64."""
    found = []
    for bits in given.bits:
        phi = weighted_degree(bits, given.windows)
        indices, values = expanded(phi, given)
        w = weights(phi.dim)
        variants = {
            "**as in the library**": Variant(indices, values, w),
            f"prefetch {NEAR} features ahead": Variant(indices, values, w, NEAR),
            "prefetch the next window": Variant(indices, values, w, indices.shape[1]),
            "w in float64": Variant(indices, values.astype(np.float64), w.astype(np.float64)),
        }
        if hasattr(mmap, "MADV_HUGEPAGE"):
            variants["w on pages of 4 KB"] = Variant(indices, values, on_pages(w, mmap.MADV_NOHUGEPAGE))
            variants["w on huge pages"] = Variant(indices, values, on_pages(w, mmap.MADV_HUGEPAGE))
        found.append(_measured(variants, given.repeat))
    head = [f"{what}, {bits} bits" for bits in given.bits for what in ("DOT", "DOT and ADD")]
    return table(["visits", *head], [[name, *(cell for part in found for cell in part[name])] for name in found[0]])


def expansion(given: Setting) -> str:
    """InMemory and visits together, by the clock on the wall: shared by DOT and ADD or not, in turn or ahead.

    Where ADD has an expansion of its own, it is made beside the first one, and not between DOT and ADD.
    """
    batch = given.windows
    rows = some_rows(given.few, batch)
    found = []
    for bits in given.bits:
        phi = weighted_degree(bits, batch)
        w = weights(phi.dim)
        filling = Filling(phi, batch)

        def all_of(use: Callable[[Picked], None], ahead: bool = False, filling: Filling = filling) -> None:
            for picked in filling.blocks(rows, ahead=ahead):
                use(picked)

        def visited(picked: Picked, w: np.ndarray = w) -> None:
            visit(*as_arrays(picked.block, len(picked.rows)), w, CHANGE, 0, np.empty(len(picked.rows)))

        def twice(picked: Picked, phi: FeatureMap = phi, visited: Callable[[Picked], None] = visited) -> None:
            picked.block.end[:] = picked.block.start
            phi.fill(batch, picked.rows, picked.block)
            visited(picked)

        runs: dict[str, Callable[[], None]] = {
            "expansion alone": lambda all_of=all_of: all_of(lambda picked: None),
            "expanded for DOT and again for ADD": lambda all_of=all_of, twice=twice: all_of(twice),
            "expanded once": lambda all_of=all_of, visited=visited: all_of(visited),
            "**expanded once, ahead in another thread**": lambda all_of=all_of, visited=visited: all_of(visited, True),
        }
        a_feature = 1e9 / (len(rows) * int(np.max(phi.bound(batch))))
        found.append(
            {name: taken * a_feature for name, taken in in_turn(runs, SHORT * given.repeat, perf_counter).items()}
        )
    head = ["DOT and ADD of each window", *(f"{bits} bits" for bits in given.bits)]
    return table(head, [[name, *(f"{part[name]:.2f}" for part in found)] for name in found[0]])


def expanded(phi: FeatureMap, given: Setting) -> tuple[np.ndarray, np.ndarray]:
    """The indices of some windows, one row each, and the values, which are those of each."""
    rows = some_rows(given.few, given.windows)
    block = Block.scratch(np.full(len(rows), int(np.max(phi.bound(given.windows)))), phi.dim)
    phi.fill(given.windows, rows, block)
    indices, values = as_arrays(block, len(rows))
    return indices, values[:1].copy()


def as_arrays(block: Block, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The first rows of a block that is full, as arrays of two dimensions."""
    assert block.indices is not None
    assert block.values is not None
    stop = int(block.end[rows - 1])
    return block.indices[:stop].reshape(rows, -1), block.values[:stop].reshape(rows, -1)


def lines_of(indices: np.ndarray) -> float:
    """On how many cache lines of w a window's features lie, the mean over some windows."""
    return float(np.mean([len(np.unique(row >> 4)) for row in indices[:100]]))


def on_pages(w: np.ndarray, advice: int) -> np.ndarray:
    """A copy of w in memory of its own, on the pages that are asked for."""
    room = mmap.mmap(-1, w.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    room.madvise(advice)
    copy = np.frombuffer(room, w.dtype)
    copy[:] = w
    return copy


def _measured(variants: dict[str, Variant], repeat: int) -> dict[str, list[str]]:
    """Nanoseconds a feature of DOT alone, and of DOT and ADD."""
    out = np.empty(max(len(variant.indices) for variant in variants.values()))
    cells: dict[str, list[str]] = {name: [] for name in variants}
    for change in (0.0, CHANGE):
        runs = {
            name: lambda variant=variant, change=change: visit(*variant[:3], change, variant.ahead, out)
            for name, variant in variants.items()
        }
        for name, taken in in_turn(runs, SHORT * repeat).items():
            cells[name].append(f"{1e9 * taken / variants[name].indices.size:.2f}")
    return cells


@kernel
def visit(indices, values, w, change, ahead, out):
    """Row by row: out[j] = <w, row j>, then w += change * row j, unless that is 0.

    With `ahead`, DOT asks for the slot of the feature so many after this one, in this row or in a later one. `values`
    has a row for each row, or one for all.
    """
    features = indices.reshape(-1)
    width = indices.shape[1]
    for j in range(len(indices)):
        row, theirs = indices[j], values[j if len(values) > 1 else 0]
        if ahead == 0:
            out[j] = row_dot(row, theirs, 0, width, w)
        else:
            out[j] = _dot_ahead(features[j * width :], theirs, ahead, w)
        if change != 0.0:
            row_add(row, theirs, 0, width, w.dtype.type(change), w)


@inner
def _dot_ahead(indices, values, ahead, w):
    total = 0.0
    far = np.uint64(len(indices) - 1)
    for k in range(np.uint64(len(values))):
        prefetch(w, np.uint64(indices[min(k + np.uint64(ahead), far)]))
        total += np.float64(w[indices[k]]) * np.float64(values[k])
    return total
