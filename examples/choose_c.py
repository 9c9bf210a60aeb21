"""Choosing C by cross-validation, with probabilities and a threshold for a purpose from the same folds.

python examples/choose_c.py
"""

import numpy as np

from dotadd import LinearSVMCV
from dotadd.genome.simulate import splice_windows

windows, y = splice_windows(4000, positives=0.1, seed=1)
others, truth = splice_windows(4000, positives=0.1, seed=2)

svm = LinearSVMCV(
    "WeightedDegree(6)", Cs=[1e-4, 1e-3, 1e-2, 1e-1], cv=5, scoring="average_precision", probability="sigmoid",
    threshold="precision=0.9", random_state=0,
).fit(windows, y)  # fmt: skip
for C, score in zip(svm.cv_results_["param_C"], svm.cv_results_["mean_test_score"], strict=True):
    print(f"C = {C:g}: average precision {score:.3f} on held-out rows", "<- chosen" if svm.C_ == C else "")

found = svm.predict(others) == 1
precision, recall = np.mean(truth[found] == 1), np.mean(found[truth == 1])
print(f"on {len(truth):,} other rows: precision {precision:.2f} (0.9 was asked for), recall {recall:.2f}")
chance = svm.predict_proba(others)[:, 1]
for low, high in ((0.0, 0.1), (0.1, 0.5), (0.5, 1.0)):
    some = (chance >= low) & (chance < high)
    print(f"said {low:.1f} to {high:.1f} of {some.sum():,}: {np.mean(truth[some] == 1):.2f} of them are sites")
