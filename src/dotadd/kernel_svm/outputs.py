"""Outputs: f of all examples, each as of the alpha it was last looked at with, and how far it can be off by now.

Since f_i = <w, phi(z_i)>, no f_i moves by more than |phi(z_i)| times the way that w has gone since, and that way is
known without a look at the example: where alpha changes within a chunk, |change of w|^2 is the sum over the chunk of
the change of alpha y times that of f. So examples far from the margin need no look while w moves by little. (Where a
kernel is indefinite this bounds nothing; but the end is always judged by f from scratch.)

A look at an example costs a kernel value for each alpha that has changed since the last one, or for each support
vector, whichever are fewer; by linadd it costs one DOT.
"""

from __future__ import annotations

import numpy as np

from dotadd.kernel_svm.gram import Gram

MUCH_FEWER = 0.75  # changed alphas for each support vector; above, f from scratch is worth it: it counts as a proof
TINY = 1e-150  # length of an example without any


class KernelOutputs:
    """f, and the alphas of the past that it belongs to; `signed` is alpha y as it is now."""

    def __init__(self, gram: Gram, signed: np.ndarray) -> None:
        n = len(signed)
        self.gram, self.signed = gram, signed
        self.f = np.zeros(n)
        self.values = 0
        """Kernel values that looks took; of a Gram with linadd the number of looks."""
        self._length = np.maximum(np.sqrt(np.maximum(gram.diagonal(), 0.0)), TINY)
        self._way = 0.0  # that w has gone
        self._way_then = np.full(n, -np.inf)  # at the last look
        self._now = 1 if signed.any() else 0  # how many alphas there have been
        self._stamp = np.zeros(n, np.int64)  # which of them f belongs to
        self._scratch = np.zeros(n, np.int64)  # which of them f was last computed from scratch with
        self._past = {0: (np.zeros(0, np.int64), np.zeros(0))}

    def fresh(self) -> np.ndarray:
        """The examples whose f is as of now."""
        return np.flatnonzero(self._stamp == self._now)

    def drift(self) -> np.ndarray:
        """Bounds on how far each f is off; infinite where there was no look yet."""
        return np.where(self._stamp == self._now, 0.0, self._length * (self._way - self._way_then))

    def move(self, rows: np.ndarray, signed: np.ndarray, f: np.ndarray) -> bool:
        """alpha y of these examples, whose f was as of now, has become this, and their f that.

        Returns whether that changes anything.
        """
        change = signed - self.signed[rows]
        if not change.any():
            return False
        support = np.flatnonzero(self.signed)
        in_use = set(np.unique(self._stamp).tolist())
        self._past = {stamp: past for stamp, past in self._past.items() if stamp in in_use}
        self._past[self._now] = support, self.signed[support]
        self._way += float(np.sqrt(max(0.0, change @ (f - self.f[rows]))))
        self._now += 1
        self.signed[rows] = signed
        self.f[rows] = f
        self._note(rows)
        return True

    def look(self, rows: np.ndarray) -> None:
        """Bring f of these examples up to date."""
        rows = rows[self._stamp[rows] < self._now]
        support = np.count_nonzero(self.signed)
        stamps = self._stamp[rows]
        anew = np.zeros(len(rows), np.bool_)
        for stamp in np.unique(stamps):
            some = stamps == stamp
            then, signed_then = self._past[int(stamp)]
            change = self.signed.copy()
            change[then] -= signed_then
            changed = np.flatnonzero(change)
            if self.gram.linadd or len(changed) > MUCH_FEWER * support:
                anew |= some
            else:
                self.f[rows[some]] += self._times(changed, change, rows[some])
        if anew.any():
            self._compute(rows[anew])
        self._note(rows)

    def prove(self) -> None:
        """Have all of f from scratch; what a look has computed with the alpha of now is."""
        self._compute(np.flatnonzero(self._scratch < self._now))

    def _compute(self, rows: np.ndarray) -> None:
        support = np.flatnonzero(self.signed)
        self.f[rows] = self._times(support, self.signed, rows)
        self._scratch[rows] = self._now
        self._note(rows)

    def _times(self, support: np.ndarray, signed: np.ndarray, rows: np.ndarray) -> np.ndarray:
        self.values += len(rows) * (1 if self.gram.linadd else len(support))
        everyone = len(rows) == len(self.f)  # in some order
        found = self.gram.times(support, signed[support], None if everyone else rows)
        return found[rows] if everyone else found

    def _note(self, rows: np.ndarray) -> None:
        self._stamp[rows], self._way_then[rows] = self._now, self._way
