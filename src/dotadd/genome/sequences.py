"""The sequences of a genome by name: their letters, in memory or on a file, and which names mean the same chromosome.

What one file calls chr1 another calls 1, and the mitochondrion is chrM in one and MT in the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable

import numpy as np

from dotadd._jit import plain
from dotadd._util.memory import available
from dotadd.genome.files import Genome

_MITOCHONDRION = ("m", "mt")


class Letters(dict[str, np.ndarray]):
    """The letters of each sequence, by name, as `Genome` cleans them."""

    def __init__(self, genome: Genome, on_progress: Callable[[float], None] | None = None) -> None:
        super().__init__()
        room = available() // 2
        for sequence in genome.sequences():
            room -= len(sequence.letters)
            self[sequence.name] = plain(sequence.letters if room > 0 else _on_disk(sequence.letters))
            if on_progress is not None:
                on_progress(sequence.share[1])
            del sequence


def _on_disk(letters: np.ndarray) -> np.ndarray:
    """The same on a file without a name, which the system brings into memory where it is read and drops again."""
    if not len(letters):
        return letters
    with tempfile.TemporaryFile() as file:
        letters.tofile(file)
        file.flush()
        return np.memmap(file, np.uint8, "r", shape=letters.shape)


def match_names(wanted: Iterable[str], present: Iterable[str]) -> dict[str, str]:
    """For each wanted name the one that is present for the same chromosome; names without one are left out.

    The name itself goes before the same one with or without "chr", and M is MT. Capitals count, except in "chr" and in
    the name of the mitochondrion. Where two present names would do equally well, the first is taken.
    """
    exact: dict[str, str] = {}
    alike: dict[str, str] = {}
    for name in present:
        exact.setdefault(name, name)
        alike.setdefault(_bare(name), name)
    found = {name: exact.get(name) or alike.get(_bare(name)) for name in dict.fromkeys(wanted)}
    return {name: other for name, other in found.items() if other is not None}


def _bare(name: str) -> str:
    """What the names of one chromosome have in common."""
    bare = name[3:] if name[:3].lower() == "chr" and len(name) > 3 else name
    return "MT" if bare.lower() in _MITOCHONDRION else bare
