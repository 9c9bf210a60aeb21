"""The benchmarks of data larger than memory run, on tiny data; and what they judge by is right."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

import dotadd
from benchmarks import online, runs, solvers, streaming, streams
from benchmarks.paper import streamsvm
from dotadd import LinearSVM


@pytest.fixture
def here(monkeypatch):
    """Runs that would have processes of their own are made in this one, which is faster."""

    def call(module, job):
        work = {"benchmarks.runs": runs.work, "benchmarks.online": online.work}[module]
        return json.loads(json.dumps(asdict(work(json.loads(json.dumps(job, default=str))))))

    monkeypatch.setattr(runs, "call", call)
    monkeypatch.setattr(runs, "WARM_ROWS", streams.TINY_ROWS)


@pytest.mark.parametrize("name", streams.KINDS)
def test_a_stream_is_written_once_with_a_fifth_held_out(name, tmp_path):
    stream = streams.write(name, tmp_path, tiny=True)
    train, test = (dotadd.open(path).load() for path in (stream.train, stream.test))
    assert (len(train), train.batch.nbytes) == (stream.rows, stream.nbytes)
    assert len(test) == pytest.approx(0.2 * (len(train) + len(test)), rel=0.5)
    assert set(train.y) == set(test.y) == {-1, 1}
    written = stream.train.stat().st_mtime_ns
    assert streams.write(name, tmp_path, tiny=True) == stream
    assert stream.train.stat().st_mtime_ns == written
    assert streams.write(name, tmp_path, 300, tiny=True).rows == 300


@pytest.mark.parametrize("name", ["ocr", "kddb", "kdd99"])
def test_no_more_than_a_piece_of_a_stream_is_made_at_a_time(name):
    source = streams.Made(lambda: streams.KINDS[name].make(30_000 if name != "ocr" else 1000, False, True))
    sizes = [chunk.batch.nbytes for chunk in source.chunks()]
    assert len(sizes) > 1
    assert max(sizes) < 1.2 * streams.PIECE
    assert sum(sizes) == source.nbytes
    again = streams.Made(source.parts)
    for one, other in zip(source.chunks(), again.chunks(), strict=True):
        np.testing.assert_array_equal(one.y, other.y)
        np.testing.assert_array_equal(one.batch.values, other.batch.values)


def test_kddb_like_rows_are_sparse_wide_and_of_length_one():
    batch, y = next(streams.KINDS["kddb"].make(4000, False, False))
    assert batch.n_features == 6000 // streams.FIELDS * streams.FIELDS
    assert len(batch.indices) / len(batch) == pytest.approx(29, abs=0.5)
    assert np.mean(y > 0) == pytest.approx(1 / 7, abs=0.01)
    for first, stop in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        assert (np.diff(batch.indices[first:stop]) > 0).all()
        assert np.linalg.norm(batch.values[first:stop]) == pytest.approx(1.0, rel=1e-5)
    counts = np.sort(np.bincount(batch.indices))[::-1]
    assert counts[: len(counts) // 100].sum() > 0.1 * counts.sum(), "few columns are in many rows"


def test_kdd99_is_repeated_in_another_order_where_more_rows_are_asked_for(tmp_path):
    base, more = (streams.write("kdd99", tmp_path, rows, tiny=True) for rows in (960, 1920))
    once, twice = (dotadd.open(stream.train).load() for stream in (base, more))
    first, second = (np.sort(twice.batch.slice(*rows).take(np.arange(960)).values) for rows in ((0, 960), (960, 1920)))
    np.testing.assert_array_equal(first, np.sort(once.batch.values))
    np.testing.assert_array_equal(first, second)
    assert (twice.y[:960] != twice.y[960:]).any()


def test_a_run_of_its_own_process_finds_what_training_here_does(tmp_path):
    stream = streams.write("kdd99", tmp_path, tiny=True)
    found = runs.fit(stream, "dcd", folder=tmp_path, score=True, C=0.5, tol=1e-3)
    svm = LinearSVM(C=0.5, solver="dcd", tol=1e-3, random_state=0).fit(str(stream.train))
    assert (found.primal, found.dual) == pytest.approx((svm.result_.primal, svm.result_.dual), rel=1e-2)
    assert found.score == pytest.approx(svm.score(str(stream.test)), abs=0.02)
    assert found.converged
    assert 0.0 <= found.gap <= 1e-3
    assert [point.seconds for point in found.trace] == sorted(point.seconds for point in found.trace)
    assert found.trace[-1].seconds < found.seconds
    assert found.peak > 50e6
    assert max(point.dual for point in found.trace) <= found.primal


def test_seconds_are_told_to_the_first_point_that_is_close_enough():
    trace = [runs.Point(second, np.nan, dual, np.nan) for second, dual in ((1.0, 50.0), (2.0, 90.0), (3.0, 95.0))]
    outcome = runs.Outcome(4.0, 101.0, 99.0, 0.02, 3, True, 1, None, trace)
    assert [outcome.within(share, 100.0) for share in (0.5, 0.2, 0.05, 0.01, 0.001)] == [1.0, 2.0, 3.0, 4.0, None]


def test_the_best_objectives_are_those_of_a_certified_run_and_are_kept(tmp_path, here, monkeypatch):
    stream = streams.write("kdd99", tmp_path, tiny=True)
    best = runs.best(stream, 1.0, folder=tmp_path, max_time=20.0)
    assert 0.0 <= 1.0 - best.dual / best.primal <= 1e-4
    chunk = dotadd.open(stream.train).load()
    X = solvers.sp.csr_matrix((chunk.batch.values, chunk.batch.indices, chunk.batch.offsets))
    svm = LinearSVM(solver="dcd", tol=1e-5, max_passes=10**5, random_state=0).fit(X, chunk.y)
    assert solvers.objective(X, chunk.y, (svm.coef_, svm.intercept_)) == pytest.approx(best.primal, rel=1e-4)
    monkeypatch.setattr(runs, "call", None)  # and now nothing may be run
    assert runs.best(stream, 1.0, folder=tmp_path, max_time=20.0) == best


def test_the_benchmark_of_streaming_has_all_solvers_within_its_limit_and_the_learners_beside(
    tmp_path, here, monkeypatch
):
    monkeypatch.setattr(streaming, "LEAST", 0.2)
    monkeypatch.setattr(streaming, "LOOSEST", streaming.WITHIN)  # at once
    monkeypatch.setattr(streaming, "SHARE", 0.4)
    (section,) = streaming.sections(["kdd99"], tmp_path, tiny=True, C=0.1, max_time=30.0)
    title, _, head, _, *lines = section.splitlines()
    stream = streams.write("kdd99", tmp_path, tiny=True)
    assert f"{stream.rows:,} examples" in title
    rows = [dict(enumerate(line.strip("|").split("|"))) for line in lines[: len(streaming.SOLVERS)]]
    assert [row[0].strip() for row in rows] == [f"dotadd {solver}" for solver in streaming.SOLVERS]
    assert all(len(row) == len(streaming.COLUMNS) == head.count("|") - 1 for row in rows)
    for row in rows:
        assert -0.01 <= float(row[6].strip(" %")) <= 0.1, "the objective is within 0.1 %"
        assert float(row[1]) >= 0.0
        assert float(row[3]) >= 0.0
        assert float(row[7]) > 0.7
        assert ("x" in row[2] and "x" in row[4]) == ("stream" not in row[0])
    learners = lines[len(streaming.SOLVERS) :][: len(streaming.LEARNERS)]
    assert [line.split("|")[1].strip() for line in learners] == list(streaming.LEARNERS)


@pytest.mark.parametrize("program", streaming.LEARNERS)
def test_a_learner_is_timed_to_the_target_or_told_at_its_best(program, tmp_path, here):
    if program == "Vowpal Wabbit":
        pytest.importorskip("vowpalwabbit")
    stream = streams.write("ocr", tmp_path, tiny=True)
    options = {"folder": tmp_path, "max_time": 0.3}
    found = online.learn(program, stream, 1.0, 0.7, **options)
    assert found.reached
    assert 0.7 <= found.score <= 1.0
    assert found.seconds > 0.0
    best = online.learn(program, stream, 1.0, 2.0, **options)
    assert not best.reached
    assert best.score >= found.score
    assert best.seconds >= 0.0


def test_without_vowpal_wabbit_its_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(online.importlib.util, "find_spec", lambda _: None)
    stream = streams.write("kdd99", tmp_path, tiny=True)
    why = online.learn("Vowpal Wabbit", stream, 1.0, 0.9, folder=tmp_path, max_time=1.0)
    cells = streaming.learner_cells("Vowpal Wabbit", why, 1.0)
    assert len(cells) == len(streaming.COLUMNS)
    assert any("not installed" in cell for cell in cells)


def test_rows_are_written_in_the_format_of_vowpal_wabbit():
    X = solvers.sp.csr_matrix([[0.0, 0.5, 2.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert online.text(X, np.array([1, -1, 1])) == b"1 | 1:0.5 2:2\n-1 | \n1 | 0:1\n"


def test_the_figures_of_streamsvm_have_a_line_for_each_run(tmp_path, here, monkeypatch, capsys):
    monkeypatch.setattr(streamsvm, "COSTS", (1e-2,))
    monkeypatch.setattr(streamsvm, "SHARES", {"1/10": 0.4, "1/4": 0.5, "all": 1.0})
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- streamsvm_figure{n} -->\n<!-- /streamsvm_figure{n} -->\n" for n in (2, 3, 4)))
    names = ["kdd99", "dna"]
    streamsvm.main(tmp_path, tiny=True, names=names, max_time=0.3, page=page, pictures=tmp_path)
    tables = page.read_text().split("<!-- streamsvm_figure")[1:]
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("| data")]
    for number, table in zip((2, 3, 4), tables, strict=True):
        lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
        assert [tuple(line[:4]) for line in lines] == [
            case.key for case in streamsvm.cases(number) if case.data in names
        ]
        for line in lines:
            row = dict(zip(streamsvm.COLUMNS, line, strict=True))
            assert float(row["gap"]) >= 0.0
            seconds = [float(row[f"s to {share:g}"]) for share in streamsvm.CLOSE if row[f"s to {share:g}"] != "-"]
            assert seconds == sorted(seconds)
            assert all(float(row["(D* - D) / D*"]) >= 0.95 * share for share in streamsvm.CLOSE[len(seconds) :])
        assert (tmp_path / f"streamsvm_figure{number}.svg").read_text().startswith("<?xml")
