"""What a new process pays for: nothing heavy at import, one line while compiling, a fallback without a cache folder."""

import os
import subprocess
import sys

import pytest

FIT = "import dotadd, numpy as np; dotadd.LinearSVM(max_passes=1, tol=9.0).fit(np.eye(4), [0, 1, 0, 1])"
LOSS = (
    "from dotadd.core.losses import Loss, total_loss; import numpy as np; "
    "print(total_loss(Loss.HINGE, np.zeros(2), np.ones(2)))"
)


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )


def loaded(code):
    """Which of the heavy packages this code brings in."""
    heavy = {"numba", "scipy", "pyarrow", "sklearn", "pandas", "polars", "rich", "cyclopts"}
    out = run(f"{code}; import sys; print(*sys.modules)").stdout.split()
    return heavy & set(out)


def test_importing_the_package_imports_nothing_heavy():
    assert loaded("import dotadd") == set()


def test_training_on_a_table_does_not_import_pandas(tmp_path):
    """Arrow does so for a scalar or for `to_numpy`: a tenth of a second, and 50 MB."""
    rows = [
        f"{k % 2},word {k},{k},{'' if k % 7 == 0 else k % 5},{'' if k % 3 == 0 else 'abc'[k % 3]}" for k in range(40)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["label,text,age,many,kind", *rows, ""]))
    phi = 'Column("text", WordNGrams(1)) + Number("age", "many").scaled("std") + Category("kind")'
    for memory in (None, "1kB"):  # which is read while training runs, from a copy
        fit = f"dotadd.LinearSVM({phi!r}, memory={memory!r}, max_passes=2).fit({str(tmp_path / 'rows.csv')!r})"
        assert "pandas" not in loaded(f"import dotadd; {fit}")


def test_fitting_an_array_imports_neither_scikit_learn_nor_arrow():
    assert loaded(FIT) <= {"numba", "scipy"}


def test_every_public_name_can_be_reached():
    run("import dotadd; [getattr(dotadd, name) for name in dotadd.__all__]")


def test_tab_completes_the_public_names_and_imports_none_of_them():
    code = (
        "import dotadd, dotadd.features, rlcompleter; completer = rlcompleter.Completer(vars());"
        "assert set(dotadd.__all__) == set(dir(dotadd)) and set(dotadd.features.__all__) == set(dir(dotadd.features))"
    )
    assert loaded(code) == set()
    found = run(code + "; print(*(completer.complete('dotadd.LinearSVM', k) for k in range(2)))").stdout
    assert found.split() == ["dotadd.LinearSVM(", "dotadd.LinearSVMCV("]


def test_compiling_says_one_line_and_the_next_process_is_silent(tmp_path):
    first, second = (run(LOSS, DOTADD_CACHE_DIR=str(tmp_path)).stderr for _ in range(2))
    assert first.startswith("dotadd: compiling for this machine")
    assert first.count("\n") == 1
    assert second == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such terminals")
def test_on_a_terminal_it_says_what_it_compiles_and_leaves_an_empty_line(tmp_path):
    import pty

    terminal, inside = pty.openpty()
    environment = os.environ | {"DOTADD_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", LOSS], env=environment, stderr=inside, stdout=subprocess.DEVNULL, check=True)
    os.close(inside)
    with open(terminal, "rb", buffering=0) as shown:
        said = shown.read(10_000).decode()
    first, _, moment = said.partition("\r\n")
    assert first.startswith("dotadd: compiling for this machine")
    *_, last, end = moment.split("\r\x1b[K")
    assert last.startswith("dotadd: compiling")
    assert "core.losses.total_loss" in moment
    assert end == ""


def test_without_a_cache_folder_it_still_works_and_says_what_to_do(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    out = run(LOSS, DOTADD_CACHE_DIR=str(blocked))
    assert out.stdout.strip() == "2.0"
    assert "set DOTADD_CACHE_DIR" in out.stderr


def test_everything_works_without_the_jit():
    out = run(FIT + ".predict(np.eye(4)).tolist()", NUMBA_DISABLE_JIT="1")
    assert out.stderr == ""
