"""dotadd against scikit-learn's load_svmlight_file, the same file, already decompressed.

python -m benchmarks.reading [--tiny] [--repeat N]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

import dotadd
from benchmarks import datasets


def write(path: Path, tiny: bool) -> None:
    """A LIBSVM file: sector's rows several times over, so that a read takes long enough to be timed."""
    from sklearn.datasets import dump_svmlight_file

    X, y = datasets.load("sector", tiny)
    dump_svmlight_file(X, y, str(path), zero_based=False)
    text = path.read_bytes()
    path.write_bytes(text * (2 if tiny else 8))


def best_of(repeat: int, run: Callable[[], object]) -> float:
    times = []
    for _ in range(repeat):
        began = perf_counter()
        run()
        times.append(perf_counter() - began)
    return min(times)


def report(*, tiny: bool = False, repeat: int = 5) -> str:
    """The table, in Markdown."""
    from sklearn.datasets import load_svmlight_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.svm"
        write(path, tiny)
        megabytes = path.stat().st_size / 1e6
        X, y = load_svmlight_file(str(path))
        read = dotadd.open(path).load()  # compiles; and the two must read the same
        assert np.array_equal(read.y, y)
        assert np.array_equal(read.batch.indices, X.indices)
        np.testing.assert_allclose(read.batch.values, X.data, rtol=1e-6)
        own = best_of(repeat, lambda: dotadd.open(path).load())
        peer = best_of(min(repeat, 3), lambda: load_svmlight_file(str(path)))
    return "\n".join(
        [
            f"| LIBSVM text of {megabytes:,.0f} MB | MB/s | scikit-learn / dotadd, seconds |",
            "|---|---|---|",
            f"| dotadd | {megabytes / own:,.0f} | |",
            f"| scikit-learn | {megabytes / peer:,.0f} | **{peer / own:.1f}x** |\n",
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    print(report(tiny=arguments.tiny, repeat=arguments.repeat))
