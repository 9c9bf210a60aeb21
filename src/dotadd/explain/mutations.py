"""In-silico mutagenesis: how the score changes with each other letter at each position of a string."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dotadd.data.batches import Strings
from dotadd.features.alphabet import Alphabet

AT_ONCE = 1 << 24  # letters of changed strings that are scored together
Score = Callable[[Strings], np.ndarray]
Piece = tuple[int, np.ndarray, np.ndarray]


def _pieces(batch: Strings, alphabet: Alphabet, most: int) -> Iterator[Piece]:
    """Row, positions and new letters of all changes, some at a time."""
    for row, length in enumerate(batch.lengths().tolist()):
        codes = alphabet.codes[np.frombuffer(batch[row], np.uint8)]
        positions, letters = np.nonzero(codes[:, None] != np.arange(alphabet.size))
        step = max(1, most // max(length, 1))
        for first in range(0, len(positions), step):
            yield row, positions[first : first + step], letters[first : first + step]


def _changed(batch: Strings, pieces: list[Piece], alphabet: Alphabet) -> Strings:
    """The strings with these letters changed."""
    parts, lengths = [], []
    for row, positions, letters in pieces:
        original = np.frombuffer(batch[row], np.uint8)
        changed = np.tile(original, (len(positions), 1))
        changed[np.arange(len(positions)), positions] = alphabet.letter_bytes[letters]
        parts.append(changed.reshape(-1))
        lengths.append(np.full(len(positions), len(original), np.int64))
    return Strings(np.concatenate(parts), np.r_[0, np.cumsum(np.concatenate(lengths))])


def changes(
    batch: Strings,
    alphabet: Alphabet,
    score: Score,
    *,
    on_progress: Callable[[float], None] | None = None,
    at_once: int = AT_ONCE,
) -> list[np.ndarray]:
    """For each row an array (letters of the alphabet, positions): the score with this letter there, less that of the
    row as it is.

    score: the scores of a batch of strings, that of each changed one for the same class.
    """
    scores = score(batch)
    found = [np.zeros((alphabet.size, length)) for length in batch.lengths().tolist()]
    held: list[Piece] = []
    size = 0

    def settle() -> None:
        again, first = score(_changed(batch, held, alphabet)), 0
        for row, positions, letters in held:
            found[row][letters, positions] = again[first : first + len(positions)] - scores[row]
            first += len(positions)

    for piece in _pieces(batch, alphabet, at_once):
        held.append(piece)
        size += len(piece[1]) * found[piece[0]].shape[1]
        if size >= at_once:
            settle()
            held, size = [], 0
            if on_progress is not None:
                on_progress((piece[0] + 1) / len(batch))
    if held:
        settle()
    return found
