"""Simulated splice-site windows: DNA of 141 letters with AG in the middle, a few true sites among many decoys.

How a site differs from a decoy, from easy to hard:

- position weights: more C and T before the site, and preferred letters right after it;
- place: the same motifs occur in decoys too, but elsewhere in the window;
- high order: a motif is a left flank, a core of eight letters and a right flank. Sites join flanks that belong
  together; decoys carry the same flanks and cores in the same place, joined wrongly. No run of letters shorter than the
  core and a letter on each side differs in frequency, so only longer k-mers at their positions can see it.

The library of motifs is always the same; the seed chooses the windows. Few true sites do not show every motif often
enough to learn it, so more data helps.
"""

from __future__ import annotations

import numpy as np

from dotadd.data.batches import Strings

LENGTH = 141
SITE = 59  # the A of AG, counted from 0

_LETTERS = np.frombuffer(b"ACGT", np.uint8)
_FLANK, _CORE = 3, 8
_MOTIF = 2 * _FLANK + _CORE
_FAMILIES, _PAIRS = 4, 4  # families share a core and have so many pairs of flanks that belong together
_PLACES = np.array([20, 38, 66, 90])  # where the motifs of each family begin
_MUTATION = 0.01  # chance that a letter of a motif is another one
_BACKGROUND = np.array([0.27, 0.23, 0.23, 0.27])
_AFTER_SITE = np.array([[0.2, 0.15, 0.45, 0.2], [0.25, 0.2, 0.2, 0.35]])


def splice_windows(rows: int, *, positives: float = 0.01, seed: int = 0) -> tuple[Strings, np.ndarray]:
    """So many windows and their labels, +1 for a site and -1 for a decoy, in random order."""
    rng = np.random.default_rng([seed, rows])
    y = np.full(rows, -1, np.int64)
    y[rng.permutation(rows)[: round(rows * positives)]] = 1
    sites, decoys = np.flatnonzero(y == 1), np.flatnonzero(y == -1)

    windows = _draw(rng, _BACKGROUND, (rows, LENGTH))
    _write_position_weights(rng, windows, sites)
    for _ in range(2):
        _write_motifs(rng, windows, sites, right_pair=True, in_place=True)
        _write_motifs(rng, windows, _some(rng, decoys), right_pair=False, in_place=True)
        _write_motifs(rng, windows, _some(rng, decoys), right_pair=True, in_place=False)
    windows[:, SITE], windows[:, SITE + 1] = 0, 2
    return Strings(_LETTERS[windows].ravel(), width=LENGTH), y


def _draw(rng: np.random.Generator, chances: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Letters 0..3, drawn with these chances by a table of 256 equally likely entries."""
    table = np.searchsorted(np.cumsum(chances)[:-1], (np.arange(256) + 0.5) / 256).astype(np.uint8)
    return table[rng.integers(0, 256, shape, np.uint8)]


def _some(rng: np.random.Generator, decoys: np.ndarray) -> np.ndarray:
    return rng.permutation(decoys)[: len(decoys) // 6]


def _write_position_weights(rng: np.random.Generator, windows: np.ndarray, sites: np.ndarray) -> None:
    for position in range(SITE - 20, SITE):
        strength = 0.15 * (position - SITE + 21) / 20
        chances = _BACKGROUND + np.array([-strength, strength, -strength, strength])
        windows[sites, position] = _draw(rng, chances, (len(sites),))
    for offset, chances in enumerate(_AFTER_SITE):
        windows[sites, SITE + 2 + offset] = _draw(rng, chances, (len(sites),))


def _library() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left flanks, cores and right flanks; flanks of one family differ from each other in every letter."""
    rng = np.random.default_rng(20090614)
    shift = np.arange(_PAIRS)[:, None]
    left = (rng.integers(0, 4, (_FAMILIES, 1, _FLANK)) + shift) % 4
    right = (rng.integers(0, 4, (_FAMILIES, 1, _FLANK)) + shift) % 4
    return left, rng.integers(0, 4, (_FAMILIES, _CORE)), right


def _write_motifs(
    rng: np.random.Generator, windows: np.ndarray, rows: np.ndarray, *, right_pair: bool, in_place: bool
) -> None:
    """One motif into each of these windows, with flanks that belong together or not, in its place or elsewhere."""
    left, core, right = _library()
    family = rng.integers(0, _FAMILIES, len(rows))
    pair = rng.integers(0, _PAIRS, len(rows))
    other = pair if right_pair else (pair + rng.integers(1, _PAIRS, len(rows))) % _PAIRS
    motifs = np.concatenate([left[family, pair], core[family], right[family, other]], axis=1).astype(np.uint8)
    mutated = rng.random(motifs.shape) < _MUTATION
    motifs[mutated] = rng.integers(0, 4, np.count_nonzero(mutated))
    first = _PLACES[family if in_place else (family + rng.integers(1, _FAMILIES, len(rows))) % _FAMILIES]
    windows[rows[:, None], first[:, None] + np.arange(_MOTIF)] = motifs
