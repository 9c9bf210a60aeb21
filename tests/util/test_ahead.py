"""Reading ahead: items in order, one of them early, and nothing left behind."""

from __future__ import annotations

import sys

import pytest

from dotadd._util.ahead import HANDOVER, ReadAhead


@pytest.mark.parametrize("ahead", [False, True])
def test_items_come_in_order(ahead):
    with ReadAhead(iter(range(5)), ahead=ahead) as items:
        assert list(items) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("first_out", [0, 1])
def test_readers_that_overlap_leave_the_switch_interval_as_it_was(first_out):
    before = sys.getswitchinterval()
    readers = [ReadAhead(iter(range(3))) for _ in range(2)]
    for reader in readers:
        reader.__enter__()
        assert sys.getswitchinterval() == pytest.approx(HANDOVER)
    readers[first_out].__exit__()
    assert sys.getswitchinterval() == pytest.approx(HANDOVER)
    readers[1 - first_out].__exit__()
    assert sys.getswitchinterval() == pytest.approx(before)
