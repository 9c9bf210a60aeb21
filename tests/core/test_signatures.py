"""Types are made one at the door: a kernel is compiled for the kinds of rows and weights there are, and for no more."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Indices none, 32 or 64 bits, values none, float32 or float64 (not both none), bytes in dense rows; w in two types.
ROWS_BY_WEIGHTS = 18
ROWS = 9
LIMITS = {
    "core.block.dot": ROWS_BY_WEIGHTS,
    "core.block.dot_add": ROWS_BY_WEIGHTS,
    "solvers.sweep.descend": ROWS_BY_WEIGHTS,
    "solvers.baselines.sgd._descend": ROWS_BY_WEIGHTS,
    "core.block.add": ROWS_BY_WEIGHTS,
    "core.block.add_squares": ROWS,
    "core.block.add_products": ROWS,
    "core.block._sum_merged_squares": 6,  # the same without dense rows
    "features.linear._copy_rows": ROWS_BY_WEIGHTS,
}
OTHERS = 4


@pytest.fixture(scope="module")
def signatures():
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("signatures.py")], capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


def test_no_kernel_is_compiled_more_often_than_it_needs(signatures):
    many = {name: len(found) for name, found in signatures.items() if len(found) > LIMITS.get(name, OTHERS)}
    assert many == {}
    assert len(signatures["core.block.dot"]) >= 6, "the program has to reach what it counts"


def test_offsets_and_row_numbers_have_one_type(signatures):
    """Both kernels begin with start, end, indices, values, at."""
    for name in ("core.block.dot", "solvers.sweep.descend"):
        for signature in signatures[name]:
            start, end, _, _, at, *_ = re.findall(r"none|(?<=rray\()\w+", signature)
            assert (start, end, at) == ("int64", "int64", "uint32"), signature
