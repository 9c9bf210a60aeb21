"""The benchmarks run, on tiny data, so that they cannot rot; and what they judge by is right."""

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import datasets, forms, locality, memory, reading, solvers, startup  # noqa: E402
from benchmarks.locality import block_method, measuring, visits  # noqa: E402
from benchmarks.paper import coffin, coffin_figure1, coffin_table2  # noqa: E402
from dotadd import LinearSVM  # noqa: E402


@pytest.mark.parametrize("name", ["a9a", "sector"])
def test_the_objective_of_the_benchmark_is_the_sum_of_the_primals(name):
    X, y = datasets.load(name, tiny=True)
    svm = LinearSVM(tol=1e-3, random_state=0).fit(X, y)
    results = svm.result_ if isinstance(svm.result_, list) else [svm.result_]
    primal = sum(result.primal for result in results)
    assert solvers.objective(X, y, (svm.coef_, svm.intercept_)) == pytest.approx(primal, rel=1e-5)


def test_every_program_reaches_the_same_objective():
    for name, times in solvers.measure(["synthetic", "sector"], tiny=True, repeat=1):
        for program, timed in times.items():
            assert timed is not None, f"{program} does not get there on {name}"
            assert -1e-3 <= timed.excess <= solvers.WITHIN


def test_the_benchmark_of_forms_runs():
    rows = [row.split("|") for row in forms.report(tiny=True).splitlines() if row.startswith("| ")]
    measured = [row for row in rows if row[1].strip() != "form" and row[7].strip()]
    assert len(measured) == 2 * len(forms.FORMS) - 1, "all but a dense w of degree 20"
    assert all(float(row[7]) > 0 and float(row[8]) > 0 for row in measured)


def test_the_benchmark_of_locality_runs():
    sections = [part.splitlines() for part in locality.report(tiny=True).split("### ")[1:]]
    tables = [[row.strip("| ").split(" | ") for row in part if row.startswith("| ")] for part in sections]
    pages = 2 if hasattr(mmap, "MADV_HUGEPAGE") else 0
    assert [len(rows) - 2 for rows in tables] == [6, len(visits.LAYOUTS), 4 + pages, 4, 8, 4]
    _, orders, _, _, passes, training = (rows[2:] for rows in tables)
    alone, pairs, fours = (int(row[1].replace(",", "")) for row in orders[:3])
    assert alone > pairs > fours, "cache lines that a window touches"
    assert all(0.9 < float(row[4]) < 1.5 for row in passes), "a way of making a pass gains less"
    assert all(float(row[7]) <= 0.01 for row in training)


@pytest.mark.parametrize("ahead", [0, 1, 3, 5, 50])
def test_a_visit_is_dot_and_then_add(ahead):
    rng = np.random.default_rng(0)
    indices, values = rng.integers(0, 40, (6, 5)).astype(np.uint32), rng.normal(size=(1, 5)).astype(np.float32)
    w = rng.normal(size=40).astype(np.float32)
    given, out = w.copy(), np.empty(6)
    visits.visit(indices, values, given, 0.5, ahead, out)
    for row, found in zip(indices, out, strict=True):
        assert found == pytest.approx(w[row] @ values[0], rel=1e-5)
        np.add.at(w, row, 0.5 * values[0])
    np.testing.assert_allclose(given, w, rtol=1e-5)


def test_a_pass_with_the_whole_gram_matrix_is_a_pass_of_visits():
    start = block_method.trained(6, measuring.setting(True, 200, 1))
    plain, blocks = start.copy(), start.copy()
    block_method.visit_all(plain)
    block_method.by_blocks(blocks, 16, True)
    assert (plain.alpha != start.alpha).any()
    np.testing.assert_allclose(blocks.alpha, plain.alpha, atol=1e-4)
    np.testing.assert_allclose(blocks.w, plain.w, atol=1e-4)


def test_the_reading_benchmark_runs():
    assert "| scikit-learn |" in reading.report(tiny=True, repeat=1)


def test_the_startup_benchmark_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = startup.report(tiny=True).splitlines()[2:]
    assert len(rows) == 5
    assert all(np.isfinite(float(row.split("|")[2])) for row in rows)


def test_the_memory_benchmark_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    grown = {row.split("|")[1].strip(): row for row in memory.report(tiny=True).splitlines()[2:]}
    assert set(grown) == {"dotadd", "scikit-learn"}


def test_the_peak_of_memory_is_seen():
    before = memory.peak()
    held = np.ones(50_000_000)
    assert memory.peak() - before > 0.9 * held.nbytes


CHANCE = 0.1  # the share of true sites among the simulated windows


def test_every_cell_of_table_2_reaches_its_gap_and_liblinear_the_same_objective(tmp_path):
    data = coffin.Data(tmp_path, tiny=True)
    cells = list(coffin_table2.measure(data, ["d8", "d20_12"], [400]))
    assert len(cells) == 2
    for cell in cells:
        assert cell.auprc > 2 * CHANCE
        assert 0.0 <= cell.trained.gap <= coffin.TOLERANCE
        assert 0.0 < cell.trained.seconds < cell.trained.wall
        assert len(coffin_table2.cells_of(cell)) == len(coffin_table2.COLUMNS)
    pytest.importorskip("liblinear")
    (compared,) = coffin_table2.compare(data, cells[1:])
    assert compared.found.ours == pytest.approx(cells[1].trained.primal, rel=1e-3), "one formula, two ways"
    assert compared.found.objective == pytest.approx(compared.found.ours, rel=0.02)
    assert compared.auprc == pytest.approx(cells[1].auprc, abs=0.05)
    assert all(len(line) == len(coffin_table2.PEERS) for line in coffin_table2.peers_of(compared))


def test_figure_1_has_a_point_for_each_number_of_bits(tmp_path, capsys):
    page, picture = tmp_path / "page.md", tmp_path / "figure.svg"
    page.write_text("before\n<!-- coffin_figure1 -->\n| 1 | kept |\n| 2 | old |\n<!-- /coffin_figure1 -->\nafter\n")
    coffin_figure1.main(tiny=True, bits=[6, 2], page=page, picture=picture)
    before, *lines, after = page.read_text().splitlines()
    assert (before, after) == ("before", "after")
    assert [line.split("|")[1].strip() for line in lines[3:-1]] == ["1", "2", "6"], "sorted, one kept, one replaced"
    assert all(float(line.split("|")[-2]) > 2 * CHANCE for line in lines[4:-1])
    assert all(line in lines for line in capsys.readouterr().out.splitlines())
    assert picture.read_text().startswith("<?xml")


def test_without_the_chromosome_one_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(coffin, "FOLDER", tmp_path / "nowhere")
    with pytest.raises(SystemExit, match="DOTADD_DATA"):
        coffin.Data(tmp_path, tiny=False)
