"""A feature map of one's own: how far apart two letters stand, whatever lies between them.

python examples/own_feature_map.py
"""

import numpy as np

from dotadd import FeatureMap, LinearSVM, check_feature_map, load
from dotadd.data.batches import Strings


class Pairs(FeatureMap):
    """The letter at a position and the one `reach` positions further on, as one of 65,536 pairs of bytes."""

    takes, distinct, dim = (Strings,), False, 1 << 16

    def __init__(self, reach):
        self.reach = reach

    def __repr__(self):
        return f"Pairs({self.reach})"

    def bound(self, batch):
        return np.maximum(0, batch.lengths() - self.reach)

    def fill(self, batch, rows, block):
        for j, row in enumerate(rows):
            letters = np.frombuffer(batch[row], np.uint8).astype(np.int64)
            block.append(j, 256 * letters[: -self.reach] + letters[self.reach :], 1.0)


words, labels = ["abcabcabc", "acbacbacb", "bcabcabca", "cbacbacba"], ["forward", "back", "forward", "back"]
check_feature_map(Pairs(2), Strings.from_list(words))
svm = LinearSVM(Pairs(1) + 0.5 * Pairs(2)).fit(words, labels)
svm.save("pairs.dotadd")
print(load("pairs.dotadd", features={"Pairs": Pairs}).predict(["cabcab", "bacbac"]))
