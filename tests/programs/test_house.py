"""The table of the house counts what is there, and says where a number has grown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import house  # noqa: E402

TREE = {
    "__init__.py": "",
    "one.py": """
from typing import Any

from dotadd._jit import inner, kernel

KNOWN = ("csv", "tsv", "jsonl")


class Part:
    def _certify(self, x: Any, y: Any) -> Any:
        return descend(x) + self.descend(y)  # type: ignore[arg-type]


class _Part: ...


@kernel
def large(a, b, c, d, e, f, g, h, i, j, k): ...


@kernel
def small(a, b, c, d, e, f, g, h, i, j): ...


@inner
def inside(a, b, c, d, e, f, g, h, i, j, k): ...
""",
    "below/two.py": '''
def opened(format):
    """One of "csv", "tsv" or "libsvm"."""
    if format == "csv":
        return Result()
    if format in ("tsv", "jsonl"):  # two of them are no list
        return KernelResult()  # type: ignore[call]  # a reason


class Part: ...


class _Part: ...
''',
}
COUNTS = {
    "files": 3,
    "modules in the root": 2,
    "call sites of `descend`": 1,
    "certificates: functions named `certify`": 1,
    "builders of a result: call sites of `Result`, `KernelResult`": 2,
    "would-move: functions named `would_move`": 0,
    "places that list formats": 3,  # a tuple, a docstring, and the comparisons of a function
    "places that list solvers": 0,
    "public class names used twice": 1,
    "lines with `Any`": 2,
    "`type: ignore`": 2,
    "`type: ignore` without a reason": 1,
    "kernels with more than 10 arguments": 1,
}


@pytest.fixture
def tree(tmp_path):
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return house.modules(tmp_path)


@pytest.mark.parametrize("name", COUNTS)
def test_each_number_counts_what_its_name_says(tree, name):
    (row,) = [row for row in house.TABLE if row.name == name]
    assert len(row.places(tree)) == COUNTS[name]


def test_lines_are_those_of_all_files(tree):
    assert len(house.lines(tree)) == sum(len(text.splitlines()) for text in TREE.values())


def test_a_number_that_has_grown_is_told_and_one_that_fell_is_not():
    (told,) = house.grown({"files": 12, "lines in src": 5}, {"files": 11, "lines in src": 6})
    assert told.startswith("files: 12")


def test_every_number_has_a_limit():
    assert set(json.loads(house.LIMITS.read_text())) == {row.name for row in house.TABLE} | set(house.ON_THE_WAY)


def test_the_house_has_not_grown():
    subprocess.run([sys.executable, "-m", "benchmarks.house", "--check"], cwd=ROOT, check=True)


def test_a_fit_walks_through_no_more_modules_than_were_agreed_on():
    assert house.grown(house.modules_of_a_fit(), json.loads(house.LIMITS.read_text())) == []
