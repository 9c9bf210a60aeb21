"""Splice sites: string kernels in a space of millions of dimensions that is never stored.

python examples/splice_sites.py [rows]
"""

import sys

from dotadd import LinearSVM, WeightedDegree, WeightedSpectrum
from dotadd.genome.simulate import splice_windows
from dotadd.model.evaluation import auprc, auroc

rows = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
train, y_train = splice_windows(rows, seed=1)
test, y_test = splice_windows(rows, seed=2)

# The features of the COFFIN paper: k-mers left and right of the site, and k-mers at their positions, hashed.
phi = (
    WeightedSpectrum(8, span=(0, 59))
    + WeightedSpectrum(8, span=(61, 141))
    + WeightedDegree(20).hashed(12)
)  # fmt: skip
svm = LinearSVM(phi, C=0.1, tol=0.01, random_state=0).fit(train, y_train)
scores = svm.decision_function(test)

result = svm.result_
print(f"{len(train):,} windows, {svm.coef_.size:,} slots, {result.passes} passes, duality gap {result.gap:.4f}")
print(f"auROC {auroc(y_test, scores):.3f}, auPRC {auprc(y_test, scores):.3f} on {len(test):,} others")
