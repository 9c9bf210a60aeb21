"""What an installed dotadd has to do on its first day; `release/check.py` runs it in a fresh environment.

Nothing but the package and what it needs is there: no tests, no repository, an empty current folder.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import numpy as np

import dotadd


def command(*arguments: str, code: int = 0) -> str:
    """The console script that was installed beside this Python."""
    script = shutil.which("dotadd", path=str(Path(sys.executable).parent))
    assert script is not None, "no console script"
    out = subprocess.run([script, *arguments], capture_output=True, text=True)
    assert out.returncode == code, f"dotadd {' '.join(arguments)}: {out.returncode}\n{out.stdout}{out.stderr}"
    return out.stdout


def main() -> None:
    assert Path(sys.prefix) in Path(dotadd.__file__).parents, f"dotadd of elsewhere: {dotadd.__file__}"
    assert files("dotadd").joinpath("py.typed").is_file()
    assert dotadd.__version__ == version("dotadd")
    assert command("--version").strip() == f"dotadd {dotadd.__version__}"

    X = np.random.default_rng(0).normal(size=(200, 5))
    y = np.where(X[:, 0] > 0, 1, -1)
    svm = dotadd.LinearSVM(random_state=0).fit(X, y)
    assert svm.score(X, y) > 0.9
    assert svm.result_.gap <= svm.tol
    svm.save("array.dotadd")
    assert np.array_equal(dotadd.load("array.dotadd").decision_function(X), svm.decision_function(X))

    texts, labels = ["win a prize", "call me at noon", "free prize now", "lunch at noon"], ["spam", "ham"] * 2
    words = dotadd.LinearSVM("NGrams((2, 3)).normalized()", C=10, random_state=0).fit(texts, labels)
    assert list(words.predict(texts)) == labels

    rows = "".join(f"{label:+d} 1:{row[0]:.6f} 2:{row[1]:.6f}\n" for row, label in zip(X, y, strict=True))
    Path("rows.svm").write_text(rows)
    command("train", "rows.svm", "-o", "rows.dotadd", "--quiet")
    predicted = [line.split("\t")[0] for line in command("predict", "rows.dotadd", "rows.svm").splitlines()]
    assert np.mean([int(label) for label in predicted] == y) > 0.9
    command("predict", "rows.dotadd", "nowhere.svm", code=2)
    print(f"dotadd {dotadd.__version__} on Python {sys.version.split()[0]}, NumPy {np.__version__}")


if __name__ == "__main__":
    main()
