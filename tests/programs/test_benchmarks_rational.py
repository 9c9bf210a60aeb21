"""The experiments with rational kernels run, on tiny data, and find what they should."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import reuters, runs
from benchmarks.paper import rational_kernels, rational_lattices, rational_size, rational_training
from dotadd.automata import Automaton, equivalent, feature_automaton, gappy_ngram
from dotadd.data.lattices import Lattices


@pytest.fixture
def here(monkeypatch):
    """Runs that would have processes of their own are made in this one, and fewer of them."""

    def call(module, job):
        assert module == rational_training.__name__
        found = rational_training.work(rational_training.Job(**json.loads(json.dumps(job))))
        return json.loads(json.dumps(asdict(found)))

    monkeypatch.setattr(runs, "call", call)
    some = ("4-gram", "gappy 3-gram")
    monkeypatch.setattr(rational_training, "KERNELS", [k for k in rational_training.KERNELS if k.name in some])


def rows_of(text, name):
    """The lines of a table on a page, as lists of cells."""
    table = text.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].strip().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def test_a_page_gets_the_section_once_with_all_tables(tmp_path, here, capsys):
    page = tmp_path / "page.md"
    page.write_text("# Before\n")
    rational_kernels.main(tiny=True, page=page)
    text = page.read_text()
    assert text.startswith("# Before\n\n## Rational kernels\n")

    training = rows_of(text, "rational_training")
    assert [row[:3] for row in training] == [
        ["30", "4-gram", "exact"], ["30", "gappy 3-gram", "exact"], ["60", "4-gram", "exact"], ["60", "4-gram", "22"]
    ]  # fmt: skip
    assert all(len(row) == len(rational_training.COLUMNS) for row in training)
    assert all(float(row[4]) > 0 and int(row[5]) > 1 for row in training)

    for _, _, _, trie, minimal, _, beside, *_ in rows_of(text, "rational_size"):
        assert int(beside) <= int(minimal) < int(trie), "weights make more states different, and prefixes even more"
    forms = {row[1]: row for row in rows_of(text, "rational_forms")}
    assert forms["minimal, incremental"][3] == forms["minimal, made anew"][3]

    (first, *_) = rows_of(text, "rational_lattices")
    assert float(first[5]) > float(first[4]) + 0.3, "only the second guess tells the classes apart"

    capsys.readouterr()
    rational_kernels.main(["lattices"], tiny=True, page=page)
    assert page.read_text().count("## Rational kernels") == 1


def test_programs_agree_on_the_objective():
    job = rational_training.Job("algorithm_2", "ngram(4)", True, 4, tiny=True)
    mine = rational_training.work(job)
    asked = asdict(job) | {"objective": mine.objective}
    svc = rational_training.work(rational_training.Job(**asked | {"program": "linear_svc"}))
    assert mine.reached
    assert svc.reached
    assert svc.objective == pytest.approx(mine.objective, rel=2e-3)


def test_the_best_path_is_the_most_likely_one_of_all():
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(5):
        arcs = [
            (k, k + step, int(label), int(label), float(rng.random() + 0.01))
            for k in range(4) for step in (1, 2) for label in rng.integers(1, 9, 2) if k + step < 5
        ]  # fmt: skip
        rows.append(Automaton.from_arcs(arcs, {3: 0.3, 4: 1.0}))
    batch = Lattices.from_automata(rows)
    for row, automaton in enumerate(rows):
        (found,) = rational_lattices.best_path(batch, row).paths()
        assert found.inputs == max(automaton.paths(), key=lambda path: path.weight).inputs


def test_stories_are_split_and_unescaped_as_the_archive_says(tmp_path, monkeypatch):
    import tarfile

    story = (
        '<REUTERS TOPICS="{}" LEWISSPLIT="{}" ID="1"><TOPICS>{}</TOPICS><TEXT>&#2;<TITLE>A &lt;B></TITLE>\n'
        "<BODY>Some\n  text &#3;</BODY></TEXT></REUTERS>\n"
    )
    text = story.format("YES", "TRAIN", "<D>acq</D><D>oil</D>") + story.format("YES", "TEST", "<D>oil</D>")
    text += story.format("NO", "TRAIN", "<D>acq</D>") + story.format("YES", "NOT-USED", "<D>acq</D>")
    (tmp_path / "reut2-000.sgm").write_text(text, encoding="latin-1")
    with tarfile.open(tmp_path / "all.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "reut2-000.sgm", "reut2-000.sgm")
    monkeypatch.setattr(reuters, "ARCHIVE", tmp_path / "all.tar.xz")
    stories = reuters.load()
    assert stories.texts == ["A <B> Some text"] * 2
    assert stories.about.tolist() == stories.train.tolist() == [True, False]


def test_the_features_of_a_story_with_gaps_are_those_of_the_composition():
    builder = gappy_ngram(2, 0.5)
    text = b"abcab"
    found = rational_size.features(text, builder)
    labels = np.frombuffer(text, np.uint8).astype(np.int32)
    expected = feature_automaton(Automaton.from_string(labels), builder.transducer(255))
    assert equivalent(found, expected)
