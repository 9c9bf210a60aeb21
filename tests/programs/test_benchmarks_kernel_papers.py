"""The experiments with kernel machines run, on tiny data, and find what they should."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.limited import Limited
from benchmarks.paper import double_chunking, linadd


def rows_of(text, name):
    """The lines of a table on a page, as lists of cells by the first two of them."""
    table = text.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].strip().splitlines()
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return lines[0], {tuple(line[:2]): line for line in lines[2:]}


@pytest.fixture
def here(monkeypatch):
    """Runs that would have a process of their own are made in this one, which is faster."""

    class Here(Limited):
        def __call__(self, *args, limit):
            return self.function(*args)

    for module in (double_chunking, linadd):
        monkeypatch.setattr(module, "Limited", Here)


def test_the_tables_of_double_chunking_have_all_lines_and_all_programs_agree(tmp_path, here, capsys):
    page = tmp_path / "page.md"
    page.write_text("# Before\n")
    double_chunking.main(tiny=True, rows=300, repeat=1, page=page)
    text = page.read_text()
    assert text.startswith("# Before\n\n## Double chunking on MNIST\n\nTables 1 to 4 of")
    for name, count in (("table1", 1), ("table2", 10), ("table3", 15)):
        head, lines = rows_of(text, f"double_chunking_{name}")
        assert len(lines) == count
        for line in lines.values():
            row = dict(zip(head, line, strict=True))
            assert all(float(row[f"{program}, s"]) >= 0.0 for program in ("double", "smo", "LIBSVM"))
            assert float(row["apart"]) < 1e-4, "all find the same dual objective"
            assert abs(int(row["errors"]) - int(row["LIBSVM's"])) <= 1
            assert int(row["at C"]) <= int(row["support vectors"])
    _, varied = rows_of(text, "double_chunking_table3")
    assert int(varied["C", "1"][11]) > int(varied["C", "100"][11]) == 0, "a small C is a bound for more"
    head, own = rows_of(text, "double_chunking_table4")
    assert {key[0] for key in own} == {"large chunk", "small chunk", "newcomers"}
    assert len({row[head.index("dual objective")][:6] for row in own.values()}) == 1, "whatever the chunks"
    double_chunking.main(["table1"], tiny=True, rows=300, repeat=1, page=page)
    assert page.read_text().count("## Double chunking on MNIST") == 1


def test_a_program_that_takes_too_long_or_is_not_there_is_told_in_words():
    answers = {"double": double_chunking.Found(0.5, 10**6, 20, 2, 3.0, 7), "smo": "> 9 s", "LIBSVM": "> 9 s"}
    calls = []

    def solve(case, program):
        calls.append(program)
        return answers.get(program, "-")

    case = double_chunking.Case(100)
    found = double_chunking.measure(case, double_chunking.PROGRAMS, solve, repeat=3)
    assert calls == [*double_chunking.PROGRAMS, "double", "double"], "they are not asked again"
    line = double_chunking.cells_of(double_chunking.Line("digit", "0", case, "1.6x"), found)
    row = dict(zip(["", "", *double_chunking.COLUMNS], line, strict=True))
    assert (row["double, s"], row["LIBSVM, s"], row["intelex, s"]) == ("0.50", "> 9 s", "-")
    assert (row["LIBSVM / double"], row["intelex / double"]) == ("> 18.0x", "-")
    assert (row["errors"], row["LIBSVM's"]) == ("7", "-")


def test_linadd_and_kernel_rows_find_the_same_dual_objective(tmp_path, here, capsys):
    page = tmp_path / "page.md"
    page.write_text("# Before\n")
    linadd.main(tiny=True, rows=300, repeat=1, page=page)
    text = page.read_text()
    assert text.startswith("# Before\n\n## Linadd against kernel rows\n")
    head, lines = rows_of(text, "linadd")
    assert list(lines) == [(name, "300") for name in linadd.TASKS]
    for line in lines.values():
        row = dict(zip(head, line, strict=True))
        assert float(row["dual by rows"]) == pytest.approx(float(row["dual by linadd"]), rel=1e-4)
        assert 0.5 < float(row["auROC"]) <= 1.0
        assert float(row["SVC, s"]) >= 0.0


def test_every_way_to_the_answer_has_the_dual_objective_of_libsvm():
    found = [linadd.solve(linadd.Case("degree", 200, tiny=True), program) for program in linadd.PROGRAMS]
    assert [one.dual for one in found] == pytest.approx([found[-1].dual] * 4, rel=1e-4)
    assert [one.auroc for one in found] == pytest.approx([found[-1].auroc] * 4, abs=1e-3)


def test_a_speed_up_is_a_bound_where_rows_take_too_long():
    case = linadd.Case("degree", 20_000)
    cells = linadd.cells_of(case, {"rows": None, "linadd": linadd.Found(2.0, 5.0, 9, 0.9), "double": None}, 30.0)
    row = dict(zip(linadd.COLUMNS, cells, strict=True))
    assert (row["rows, s"], row["rows / linadd"], row["double, s"], row["SVC, s"]) == ("> 30", "> 15.0x", "> 30", "-")


def napping(seconds):
    time.sleep(seconds)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return os.getpid(), cores


def test_a_call_over_its_limit_is_ended_and_the_next_one_has_a_new_process():
    with Limited(napping, threads=1) as limited:
        first = limited(0.0, limit=60.0)
        assert first == limited(0.0, limit=60.0), "one process for all calls"
        assert first[1] == 1
        assert limited(60.0, limit=0.1) is None
        assert limited(0.0, limit=60.0)[0] not in (first[0], os.getpid())


def test_mails_become_lower_case_words(tmp_path, monkeypatch):
    import json
    import lzma

    folder = tmp_path / "enron_spam"
    folder.mkdir()
    mails = [{"label": "spam", "text": "Buy NOW, 100% off!"}] * 2 + [{"label": "ham", "text": "Dear all"}] * 3
    with lzma.open(folder / "enron_spam.jsonl.xz", "wt") as file:
        file.writelines(json.dumps(mail) + "\n" for mail in mails)
    monkeypatch.setattr(linadd.datasets, "FOLDER", tmp_path)
    monkeypatch.setattr(linadd, "HELD_OUT", 2)
    train, held_out = linadd.mails(False), linadd.mails(True)
    found = sorted((bytes(part[0][k]), int(part[1][k])) for part in (train, held_out) for k in range(len(part[1])))
    assert found == [(b"buy now off ", 1)] * 2 + [(b"dear all", -1)] * 3
    assert len(held_out[1]) == 2
    assert set(np.unique(train[1])) <= {-1, 1}
