"""Letters: all sequences of a genome at once, in memory where there is room and else on a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import numpy as np

from dotadd._jit import plain
from dotadd._util.memory import available
from dotadd.genome.files import Genome


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
