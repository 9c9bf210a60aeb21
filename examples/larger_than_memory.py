"""Data larger than memory: the file is read again and again within a budget, to the answer of all rows at once.

python examples/larger_than_memory.py
"""

import os
import warnings

import numpy as np

from dotadd import LinearSVM

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 40)).round(3)
y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=len(X)) > 0, "yes", "no")
with open("rows.csv", "w", encoding="utf8") as file:
    file.write(",".join([*(f"x{j}" for j in range(X.shape[1])), "label"]) + "\n")
    file.writelines(",".join([*map(str, row), label]) + "\n" for row, label in zip(X.tolist(), y, strict=True))

warnings.simplefilter("ignore")  # which say that the file does not fit and is read in turns
small = LinearSVM(memory="400kB", C=0.01, tol=0.01, random_state=0).fit("rows.csv", keep_cache=False)
whole = LinearSVM(C=0.01, tol=0.01, random_state=0).fit("rows.csv")

print(f"{os.path.getsize('rows.csv') / 1e6:.1f} MB on disk, {len(X):,} rows")
for name, svm in (("400 kB", small), ("all of it", whole)):
    found = svm.result_
    print(f"{name} in memory: {found.solver}, {found.passes} passes, objective {found.primal:.2f}, gap {found.gap:.4f}")
print(f"predictions that agree: {np.mean(small.predict('rows.csv') == whole.predict('rows.csv')):.2%}")
