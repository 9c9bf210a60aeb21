"""Solvers compared: the numbers are those of the results, lines show what they claim to, and names are no markup."""

from __future__ import annotations

import importlib
import json
import os
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from dotadd import DotaddError, LinearSVM
from dotadd.cli import run
from dotadd.report.compare import Comparison, SolverRun, as_page, write
from dotadd.report.curves import DARK, DASHES, LIGHT, MARKS, PLACES
from dotadd.solvers import table
from dotadd.solvers.result import Progress, Reason, Result
from dotadd.solvers.table import Needs, that_need
from dotadd.sources import open as open_source
from dotadd.sources.around import Few, Kept

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)
STREAMING = that_need(Needs.PIECES)

command = importlib.import_module("dotadd.cli.compare")  # the package has the function under this name
EVIL = '<script>alert(1)<&"$\\frac{x'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two and three classes as LIBSVM text, and a file whose name and labels are markup."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4)).round(3)
    noise = 0.5 * rng.standard_normal(80)
    for name, y in {"two": np.where(X[:, 0] + noise > 0, 1, -1), "three": X[:, :3].argmax(axis=1)}.items():
        lines = (f"{k} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x, k in zip(X, y, strict=True))
        (tmp_path / f"{name}.svm").write_text("\n".join(lines) + "\n")
    rows = (f"{x[0]},{x[1]},{'<b>&' if x[0] > 0 else 'not'}" for x in X)
    (tmp_path / f"{EVIL}.csv").write_text("a,b,label\n" + "\n".join(rows) + "\n")
    return tmp_path


def fitted(name, solver, **settings):
    svm = LinearSVM(solver=solver, random_state=0, **settings).fit(open_source(f"{name}.svm"))
    return svm.result_ if isinstance(svm.result_, list) else [svm.result_]


def told(path):
    return json.loads(path.read_text(), parse_constant=pytest.fail)


def plain(text):
    return "".join(ElementTree.fromstring(text.partition("\n")[2]).itertext())


@pytest.mark.parametrize("name", ["two", "three"])
@pytest.mark.filterwarnings("ignore::dotadd.errors.NotConvergedWarning")
def test_the_numbers_are_those_of_the_results(folder, capsys, name):
    expected = {solver: fitted(name, solver, C=2.0, tol=0.01) for solver in ("dcd", "sgd")}
    for output in ("c.json", "c.html"):
        assert run(f"compare {name}.svm --solvers dcd,sgd -C 2 --tol 0.01 -o {output}".split()) == 0
    shown, page, found = capsys.readouterr().out, plain((folder / "c.html").read_text()), told(folder / "c.json")
    assert [solver["solver"] for solver in found["solvers"]] == ["dcd", "sgd"]
    for solver in found["solvers"]:
        results = expected[solver["solver"]]
        for problem, result in zip(solver["problems"], results, strict=True):
            for number in ("primal", "dual", "gap", "passes"):
                assert problem[number] == getattr(result, number)
            assert problem["reason"] == result.reason.value
            primal = [row["primal"] for row in problem["trace"]]
            assert primal == [row.primal for row in result.trace]
            assert solver["seconds"] >= problem["trace"][-1]["seconds"]
        assert solver["primal"] == pytest.approx(sum(result.primal for result in results))
        for text in (shown, page):
            assert solver["solver"] in text
            assert f"{solver['primal']:.7g}" in text
            assert solver["reason"] in text
    bound = sum(result.dual for result in expected["dcd"])
    best = min(solver["primal"] for solver in found["solvers"])
    assert (found["bound"], found["best"]) == (pytest.approx(bound), best)
    assert f"{bound:.7g}" in page
    assert f"{bound:.7g}" in shown
    for solver in found["solvers"]:
        assert solver["above"] == pytest.approx((solver["primal"] - bound) / best)
        near = solver["primal"] <= 1.01 * best
        assert (solver["seconds_to_within"]["0.01"] is not None) is near
    assert found["problem"]["rows"] == 80
    assert found["problem"]["C"] == 2.0


def progress(passes, seconds, primal, gap=np.nan, sample=None):
    return Progress(passes, seconds, primal, primal * (1 - gap), gap, 1, 1, sample)


def result(trace, primal, dual=None, reason=Reason.CONVERGED):
    gap = None if dual is None else (primal - dual) / primal
    return Result(np.zeros(1), 0.0, None, primal, dual, gap, reason, len(trace), {"all": 1.0}, trace)


def test_a_solver_is_there_once_no_later_objective_is_worse():
    trace = [progress(1, 1.0, 10.0), progress(2, 2.0, 5.0), progress(3, 3.0, 9.0), progress(4, 4.0, 5.0)]
    one = SolverRun.of("sgd", [result(trace, 4.9)], 5.0, 20.0)
    assert one.reached(5.0) == 4.0
    assert one.reached(9.5) == 2.0
    assert one.reached(4.95) == 5.0
    assert one.reached(4.0) is None
    worse = SolverRun.of("sgd", [result(trace, 6.0)], 5.0, 20.0)  # the certificate overrules the estimates
    assert worse.reached(5.5) is None
    assert SolverRun.of("sgd", [result(trace, np.nan)], 5.0, 20.0).reached(100.0) is None


def test_problems_solved_one_after_the_other_add_up_by_the_clock():
    first = result([progress(1, 1.0, 8.0, 0.5), progress(2, 2.0, 4.0, 0.25)], 3.5, 3.0)
    second = result([progress(1, 3.0, 6.0, 0.5)], 5.0, 4.0)
    both = SolverRun.of("ocas", [first, second], 4.0, 10.0)
    assert [point[:3] for point in both.points] == [
        (0.5, 1.0, 18.0),
        (1.0, 2.0, 14.0),
        (1.5, 3.0, 10.0),
        (1.5, 4.0, 8.5),
    ]
    assert [point.gap for point in both.points] == pytest.approx([14 / 18, 11 / 14, 4 / 10, 1.5 / 8.5])
    assert both.gap == pytest.approx(1.5 / 8.5)


def test_passes_over_a_sample_are_another_problem():
    trace = [progress(1, 1.0, 0.1, 0.5, 10), progress(2, 2.0, 0.2, 0.5, 20), progress(3, 3.0, 7.0, 0.5)]
    one = SolverRun.of("dcd", [result(trace, 5.0, 4.0)], 4.0, 10.0)
    assert [point.passes for point in one.points] == [3, 3]
    notes = Comparison("x", {"tol": 0.1}, [one], {}).notes()
    assert any("Until 2 s dcd trained on a sample" in note and "20 rows" in note for note in notes)


def test_the_bound_is_the_largest_dual_of_each_problem():
    a = SolverRun.of("dcd", [result([], 5.0, 3.0), result([], 6.0, 5.0)], 1.0, 9.0)
    b = SolverRun.of("ocas", [result([], 5.0, 4.0), result([], 6.0, 4.5)], 1.0, 9.0)
    c = SolverRun.of("sgd", [result([], 5.0), result([], 5.5)], 1.0, 9.0)
    assert Comparison("x", {}, [a, b, c], {}).bound == 9.0
    assert Comparison("x", {}, [a, b, c], {}).above(c.primal) == pytest.approx(1.5 / 10.5)
    alone = Comparison("x", {"tol": 0.1}, [c], {})
    assert alone.bound is None
    assert alone.above(12.0) == pytest.approx(1.5 / 10.5)
    assert any("No solver has certified a dual" in note for note in alone.notes())
    assert "not known for any of them" in plain(as_page(alone))


def test_names_and_labels_are_no_markup(folder):
    assert run(["compare", f"{EVIL}.csv", "--solvers", "dcd", "-o", "c.html", "-q"]) == 0
    text = (folder / "c.html").read_text()
    root = ElementTree.fromstring(text.partition("\n")[2])
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert "svg" in tags
    assert not tags & {"script", "b", "link", "img"}
    assert EVIL in plain(text)
    assert "<b>&" in plain(text)
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!#)|@import|url\((?!#)", text)  # nothing from elsewhere
    assert run(["compare", f"{EVIL}.csv", "--solvers", "dcd", "-o", "c.svg", "-q"]) == 0
    drawn = ElementTree.parse(folder / "c.svg")
    assert any(EVIL in (element.text or "") for element in drawn.iter("{http://www.w3.org/2000/svg}text"))


def test_every_solver_has_a_line_in_the_picture(folder):
    assert run(["compare", "two.svm", "--solvers", "dcd,pegasos", "-o", "c.png", "-q"]) == 0
    assert (folder / "c.png").read_bytes().startswith(b"\x89PNG")
    assert run(["compare", "two.svm", "--solvers", "pegasos,dcd", "-o", "c.html", "-q"]) == 0
    text = (folder / "c.html").read_text()
    legend = [element.text for element in ElementTree.fromstring(text.partition("\n")[2]).iter() if element.text]
    assert legend.index("pegasos") < legend.index("dcd")
    lines = {place for place in range(len(LIGHT)) if f"stroke: var(--line{place})" in text}
    assert len(lines) == 2


def test_every_solver_has_a_look_of_its_own():
    assert {*SOLVERS, *STREAMING} == set(PLACES)
    assert len(LIGHT) == len(DARK) == len(DASHES) == len(MARKS) == len(PLACES)
    assert len({*LIGHT, *DARK}) == 2 * len(LIGHT)
    assert len(set(MARKS)) == len(MARKS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("-o c.html", "give a data file"),
        ("two.svm", "--output"),
        ("none.svm -o c.html", "none.svm"),
        ("two.svm -o c.pdf", r"c.pdf: comparisons are written as \.html"),
        ("two.svm -o none/c.html", "the folder .* does not exist"),
        ("two.svm -o . --solvers dcd", "written as"),
        ("two.svm -o c.html --solvers dcd,magic", "no solver 'magic'; choose from dcd, sgd"),
        ("two.svm -o c.html --solvers dcd,sgd,dcd", "dcd is there twice"),
        ("two.svm -o c.html --solvers dcd,", "no solver ''"),
        ("two.svm -o c.html -C -1", "C is -1.0, and has to be a positive number$"),
        ("two.svm -o c.html --max-time 0", "max_time is 0"),
        ("two.svm -o c.html --memory much", "'much' is no size of memory"),
        ("two.svm -o c.html --max-passes 0", "max_passes is 0"),
        ("two.svm -o c.html --features Spectrum(3)", "strings"),
        ("two.svm -o c.html --label y", "label"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder, capsys, arguments, words):
    before = sorted(os.listdir(folder))
    assert run(["compare", *arguments.split()]) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if "compiling for this machine" not in line]
    assert out == ""
    assert len(lines) == 1
    assert re.search(words, lines[0]), lines[0]
    assert sorted(os.listdir(folder)) == before


def test_a_solver_that_refuses_the_problem_does_not_stop_the_others(folder, capsys, monkeypatch):
    def refuse(*_):
        raise DotaddError("picky wants <smooth> losses")

    monkeypatch.setitem(table.SOLVERS, "picky", table.Solver("picky", "refuses", Needs.ROWS, refuse))
    assert run(["compare", "two.svm", "--solvers", "picky,dcd", "-o", "c.html"]) == 0
    assert "dotadd: picky did not run: picky wants <smooth> losses" in capsys.readouterr().err
    assert "picky did not run: picky wants <smooth> losses" in plain((folder / "c.html").read_text())
    assert run(["compare", "two.svm", "--solvers", "picky", "-o", "d.html"]) == 2
    assert "picky wants <smooth> losses" in capsys.readouterr().err
    assert not (folder / "d.html").exists()


def test_by_default_all_run_that_take_the_loss(folder, monkeypatch):
    def refuse(*_):
        raise DotaddError("not this loss")

    for name in SOLVERS:
        if name not in ("dcd", "sgd", "pegasos"):
            monkeypatch.delitem(table.SOLVERS, name)
    monkeypatch.setitem(table.SOLVERS, "picky", table.Solver("picky", "refuses", Needs.ROWS, refuse))
    assert run(["compare", "two.svm", "-o", "c.json", "-q"]) == 0
    found = told(folder / "c.json")
    assert [solver["solver"] for solver in found["solvers"]] == ["dcd", "sgd"]
    assert found["refused"] == {}


def test_ctrl_c_keeps_the_curve_so_far_and_starts_no_other_solver(folder, capsys, monkeypatch):
    tell = command.TimedWatch.__call__

    def interrupt(self, now, which, classes):
        tell(self, now, which, classes)
        if self.title == "sgd" and now.passes == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(command.TimedWatch, "__call__", interrupt)
    assert run(["compare", "two.svm", "--solvers", "dcd,sgd,pegasos", "-o", "c.json"]) == 130
    assert "interrupted; what was measured until then is in c.json" in capsys.readouterr().err
    dcd, sgd = told(folder / "c.json")["solvers"]
    assert (dcd["solver"], sgd["solver"]) == ("dcd", "sgd")
    assert sgd["reason"] == Reason.INTERRUPTED.value
    assert [row["passes"] for row in sgd["problems"][0]["trace"]] == [1, 2]


def test_ctrl_c_while_compiling_keeps_what_others_have_done(folder, monkeypatch):
    follow = command.follow

    def interrupt(svm, *rest):
        if svm.solver == stop_at:
            raise KeyboardInterrupt
        return follow(svm, *rest)

    monkeypatch.setattr(command, "follow", interrupt)
    stop_at = "sgd"
    assert run(["compare", "two.svm", "--solvers", "dcd,sgd", "-o", "c.json"]) == 130
    assert [solver["solver"] for solver in told(folder / "c.json")["solvers"]] == ["dcd"]
    stop_at = "dcd"
    assert run(["compare", "two.svm", "--solvers", "dcd,sgd", "-o", "d.json"]) == 130
    assert not (folder / "d.json").exists()


def test_data_is_read_once_and_bad_rows_are_counted_once(folder, capsys, monkeypatch):
    (folder / "dna.csv").write_text("seq,label\nACGT,1\nACNT,0\nAAGT,1\nCCGT,0\nTTGT,0\n")
    opened = command.Reading.open
    passes = []

    def counted(self, data, like=None):
        source = opened(self, data, like)
        chunks = source.chunks
        source.chunks = lambda *size: passes.append(1) or chunks(*size)
        return source

    monkeypatch.setattr(command.Reading, "open", counted)
    options = "--column seq --features Spectrum(2) --on-bad-row skip -q"
    assert run(f"compare dna.csv --solvers dcd,sgd -o c.json {options}".split()) == 0
    assert passes == [1]
    assert "left out 1 bad rows" in capsys.readouterr().err
    assert told(folder / "c.json")["problem"]["rows"] == 4


def test_data_larger_than_the_memory_it_may_take_is_read_by_each_solver(folder, capsys):
    arguments = ["compare", "two.svm", "--solvers", "stream,ocas,dcd", "-o", "c.json", "--memory", "1kB"]
    assert run([*arguments, "--tol", "0.01"]) == 0
    assert "dotadd: dcd did not run: solver='dcd' works with examples in memory" in capsys.readouterr().err
    found = told(folder / "c.json")
    assert [solver["solver"] for solver in found["solvers"]] == ["stream", "ocas"]
    assert found["problem"]["memory"] == "1kB"
    optimum = fitted("two", "dcd", tol=1e-6)[0].primal
    for solver in found["solvers"]:
        assert optimum * (1 - 1e-5) <= solver["primal"] <= 1.02 * optimum


def test_solvers_for_data_on_disk_run_by_default_only_there():
    assert not set(command.usual(True)) & set(STREAMING)
    assert set(command.usual(False)) == {*command.usual(True), *STREAMING}


def test_the_total_weight_is_that_of_all_rows(folder):
    rows = "".join(f"{k % 2},{k},{k / 4}\n" for k in range(10))
    (folder / "w.csv").write_text("y,a,w\n" + rows)
    assert command.total_weight(open_source("w.csv", label="y", weight="w")) == sum(k / 4 for k in range(10))
    assert command.total_weight(open_source("two.svm")) is None


def test_a_few_rows_have_every_class():
    y = np.array([0] * 50 + [1] + [0] * 29 + [2])
    few = Few(Kept(open_source(np.arange(81.0)[:, None], y)), 5).load()
    assert few.batch.values[:, 0].tolist() == [0, 1, 20, 40, 50, 60, 80]
    assert few.y.tolist() == [0, 0, 0, 0, 1, 0, 2]


def test_a_second_ctrl_c_leaves_the_estimates_and_no_mark(tmp_path):
    trace = [progress(1, 1.0, 8.0, 0.5), progress(2, 2.0, 6.0, 0.2)]
    cut = SolverRun.of("ocas", [result(trace, np.nan, np.nan, Reason.INTERRUPTED)], 2.0, 10.0)
    assert [point.primal for point in cut.points] == [8.0, 6.0]
    whole = SolverRun.of("dcd", [result(trace, 5.0, 4.0)], 3.0, 10.0)
    for runs in ([whole, cut], [cut]):
        found = Comparison("x", {"tol": 0.1}, runs, {})
        assert found.bound == (4.0 if whole in runs else None)
        assert found.rows()[-1][3:8] == ["-"] * 5
        write(found, tmp_path / "c.json")
        assert told(tmp_path / "c.json")["solvers"][-1]["primal"] is None
        assert "ocas" in plain(as_page(found))


def test_without_matplotlib_only_json_is_written(folder, capsys, forbid_matplotlib):
    forbid_matplotlib()
    assert run(["compare", "two.svm", "--solvers", "dcd", "-o", "c.html"]) == 2
    assert "pip install 'dotadd[plots]'" in capsys.readouterr().err
    assert not (folder / "c.html").exists()
    assert run(["compare", "two.svm", "--solvers", "dcd", "-o", "c.json", "-q"]) == 0


def test_a_page_that_cannot_be_drawn_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("dotadd.report.curves.convergence_figure", lambda *_: 1 / 0)
    one = SolverRun.of("dcd", [result([progress(1, 1.0, 5.0, 0.5)], 4.0, 3.0)], 2.0, 10.0)
    with pytest.raises(ZeroDivisionError):
        write(Comparison("x", {"tol": 0.1}, [one], {}), tmp_path / "c.html")
    assert list(tmp_path.iterdir()) == []
