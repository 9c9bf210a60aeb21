"""Kernel machines: RBF, the RBF of features of strings, and a kernel of one's own.

python examples/kernels.py
"""

import numpy as np

from dotadd import KernelSVM, LinearSVM

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 2))
y = np.where(np.sin(2 * X[:, 0]) * X[:, 1] > 0, "in", "out")  # no line separates these
train, test = slice(0, 1000), slice(1000, None)


def laplace(one, two):
    """exp(-|a - b|) for each pair of rows: any function of two arrays that gives a matrix is a kernel."""
    return np.exp(-np.abs(one[:, None] - two[None]).sum(axis=2))


machines = {
    "a line": LinearSVM(random_state=0),
    "RBF": KernelSVM("rbf", gamma=2.0, C=10, random_state=0),
    "a kernel of one's own": KernelSVM(laplace, C=10, random_state=0),
}
for name, svm in machines.items():
    svm.fit(X[train], y[train])
    vectors = f", {svm.n_support_.sum()} support vectors" if isinstance(svm, KernelSVM) else ""
    print(f"{name}: right on {svm.score(X[test], y[test]):.1%} of {len(y[test])} others{vectors}")

words = ["banana", "bandana", "cabana", "savanna", "kitten", "mitten", "bitten", "smitten"]
svm = KernelSVM("rbf", of="Spectrum(2, alphabet='abcdefghijklmnopqrstuvwxyz').normalized()", gamma=1.0, C=10)
svm.fit(words, ["a"] * 4 + ["e"] * 4)
print("strings:", dict(zip(["havana", "kittens"], svm.predict(["havana", "kittens"]).tolist(), strict=True)))
