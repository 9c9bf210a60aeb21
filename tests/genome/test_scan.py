"""Scan: each candidate of the definition has the score of its window, in every format; bad models are refused."""

from __future__ import annotations

import gc
import gzip
import random
import sys
import weakref
from itertools import pairwise

import numpy as np
import pytest
from naive_genome import fasta, random_genome, windows

from dotadd import DataError, DotaddError, Linear, ModelError, Spectrum, WeightedDegree
from dotadd.cli import run
from dotadd.cli.progress import Bar
from dotadd.features.base import Shape
from dotadd.genome import files
from dotadd.genome.scan import scan
from dotadd.model.linear import Model

LENGTH, BEFORE = 14, 5


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A genome with N and soft-masked letters up to its ends, and a model of any weights."""
    rng = random.Random(2)
    genome = random_genome(rng, sequences=3, most=2000)
    genome["last"] = "ag" * 20 + "CT" * 20 + "N" + "AGT" * 10
    folder = tmp_path_factory.mktemp("scan")
    (folder / "g.fa").write_text(fasta(genome))
    shape = Shape("strings", length=LENGTH)
    phi = WeightedDegree(3).resolve(shape)
    w = np.random.default_rng(0).standard_normal(phi.dim).astype(np.float32)
    model = Model(phi, shape, w, np.array([0.25]), np.array([-1, 1]))
    model.save(folder / "m.dotadd")
    return folder, genome, model


def expected(made, signal="acceptor", before=BEFORE, every=False):
    """(sequence, start, end, strand) and the score of each candidate."""
    _, genome, model = made
    found, _, _ = windows(genome, signal, LENGTH, before, every=every)
    scores = model.decision_function([window.letters for window in found])
    return [(w.sequence, w.position - 1, w.position + (0 if every else 1), w.strand) for w in found], scores


def read(path):
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return [line.split("\t") for line in text.splitlines()]


@pytest.mark.parametrize("signal", ["acceptor", "donor"])
@pytest.mark.parametrize("ending", ["bedgraph", "bg.gz"])
def test_each_candidate_has_the_score_of_its_window(made, tmp_path, monkeypatch, signal, ending):
    folder, _, model = made
    monkeypatch.setattr("dotadd.genome.scan.ROWS", 50)
    path = tmp_path / f"s.{ending}"
    done = scan(model, folder / "g.fa", path, signal=signal, before=BEFORE)
    places, scores = expected(made, signal)
    assert done.positions == done.written == len(places) > 300
    rows = read(path)
    assert [(row[0], int(row[1]), int(row[2])) for row in rows] == [place[:3] for place in places]
    assert np.array_equal(np.array([row[3] for row in rows], np.float32), scores.astype(np.float32))
    assert {place[3] for place in places} == {"+", "-"}


def test_every_position_of_both_strands_has_the_score_of_its_window(made, tmp_path):
    folder, _, model = made
    places, scores = expected(made, every=True)
    options = {"signal": "acceptor", "before": BEFORE, "every": True}
    done = scan(model, folder / "g.fa", tmp_path / "s.bed", threshold=-100, **options)
    rows = read(tmp_path / "s.bed")
    assert done.positions == done.written == len(places) > 5000
    assert [(row[0], int(row[1]), int(row[2]), row[5]) for row in rows] == places
    np.testing.assert_allclose(np.array([row[6] for row in rows], float), scores, rtol=1e-5, atol=1e-6)
    for strand in "+-":
        done = scan(model, folder / "g.fa", tmp_path / "s.bedgraph", strand=strand, **options)
        mine = [(place, score) for place, score in zip(places, scores, strict=True) if place[3] == strand]
        rows = read(tmp_path / "s.bedgraph")
        assert done.positions == len(mine)
        assert [(row[0], int(row[1]), int(row[2])) for row in rows] == [place[:3] for place, _ in mine]
        np.testing.assert_allclose(
            np.array([row[3] for row in rows], float), [s for _, s in mine], rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("name", ["s.bedgraph", "s.bw"])
def test_a_format_with_one_score_a_place_wants_one_strand_of_every_position(made, tmp_path, name):
    pytest.importorskip("pybigtools")
    folder, _, model = made
    with pytest.raises(DotaddError, match=r"give strand, or a \.bed file"):
        scan(model, folder / "g.fa", tmp_path / name, signal="acceptor", every=True)
    assert not list(tmp_path.iterdir())


def test_a_scan_has_one_text_in_memory_whatever_the_number_of_sequences(made, tmp_path, monkeypatch):
    _, _, model = made
    rng = random.Random(3)
    genome = {f"chr{k}": "".join(rng.choices("ACGT", k=2000)) for k in range(30)}
    (tmp_path / "g.fa").write_text(fasta(genome))
    monkeypatch.setattr("dotadd.genome.files.PASSING", 1000)
    texts = weakref.WeakSet()
    inside = files.Text.__init__
    most = 0

    def noted(self, *args):
        nonlocal most
        gc.collect()
        inside(self, *args)
        texts.add(self)
        most = max(most, sum(len(text) for text in texts))

    monkeypatch.setattr(files.Text, "__init__", noted)
    scan(model, tmp_path / "g.fa", tmp_path / "s.bedgraph", signal="acceptor", before=BEFORE, n_jobs=1)
    places, _ = expected((None, genome, model))
    assert [(row[0], int(row[1]), int(row[2])) for row in read(tmp_path / "s.bedgraph")] == [p[:3] for p in places]
    assert (
        0 < most <= 3 * (2 * max(map(len, genome.values())) + 1000)
    )  # one that is read, one that is scored, one written


def test_intervals_of_one_sequence_never_overlap(made, tmp_path):
    folder, _, model = made
    for signal in ("acceptor", "donor"):
        scan(model, folder / "g.fa", tmp_path / "s.bedgraph", signal=signal)
        rows = [(row[0], int(row[1]), int(row[2])) for row in read(tmp_path / "s.bedgraph")]
        pairs = [(a, b) for a, b in pairwise(rows) if a[0] == b[0]]
        assert all(a[2] <= b[1] for a, b in pairs)


@pytest.mark.parametrize("threshold", [None, 1.5])
def test_calls_are_the_candidates_above_the_threshold(made, tmp_path, threshold):
    folder, _, model = made
    done = scan(model, folder / "g.fa", tmp_path / "s.bed", signal="acceptor", before=BEFORE, threshold=threshold)
    places, scores = expected(made)
    rows = read(tmp_path / "s.bed")
    calls = [place for place, score in zip(places, scores, strict=True) if score > (threshold or 0)]
    assert [(row[0], int(row[1]), int(row[2]), row[5]) for row in rows] == calls
    assert 0 < done.written == len(calls) < done.positions
    assert {row[3] for row in rows} == {"acceptor"}
    for row in rows:
        assert int(row[4]) == min(1000, max(0, round(500 + 250 * float(row[6]))))


def test_one_strand_alone_and_thresholds_for_all_formats(made, tmp_path):
    folder, _, model = made
    places, scores = expected(made)
    for strand in "+-":
        scan(model, folder / "g.fa", tmp_path / "s.bg", signal="acceptor", before=BEFORE, strand=strand, threshold=-1)
        keep = [p[:3] for p, score in zip(places, scores, strict=True) if p[3] == strand and score > -1]
        assert [(row[0], int(row[1]), int(row[2])) for row in read(tmp_path / "s.bg")] == keep


def test_bigwig_holds_the_same_scores(made, tmp_path):
    bigtools = pytest.importorskip("pybigtools")
    folder, genome, model = made
    scan(model, folder / "g.fa", tmp_path / "s.bw", signal="acceptor", before=BEFORE)
    places, scores = expected(made)
    track = bigtools.open(str(tmp_path / "s.bw"))
    for name in {place[0] for place in places}:
        assert track.chroms()[name] == len(genome[name])
        here = [(*p[1:3], np.float32(s)) for p, s in zip(places, scores, strict=True) if p[0] == name]
        assert [(start, end, np.float32(value)) for start, end, value in track.records(name)] == here
    assert [path.name for path in tmp_path.iterdir()] == ["s.bw"]


def test_bigwig_without_pybigtools_says_what_to_install(made, tmp_path, monkeypatch):
    folder, _, model = made
    monkeypatch.setitem(sys.modules, "pybigtools", None)
    with pytest.raises(DotaddError, match=r"pip install 'dotadd\[genomics\]'"):
        scan(model, folder / "g.fa", tmp_path / "s.bw", signal="acceptor")
    assert not list(tmp_path.iterdir())


def test_the_command_scans_several_files_with_the_default_place_of_the_signal(made, tmp_path, capsys):
    folder, genome, _ = made
    paths = []
    for name, text in genome.items():
        paths.append(str(tmp_path / name))
        (tmp_path / name).write_text(fasta({name: text}))
    out = tmp_path / "s.bedgraph"
    assert run(["scan", *paths, "--model", f"{folder}/m.dotadd", "--signal", "acceptor", "-o", str(out)]) == 0
    places, scores = expected(made, before=LENGTH * 59 // 141)
    rows = read(out)
    assert [(row[0], int(row[1]), int(row[2])) for row in rows] == [place[:3] for place in places]
    assert np.allclose([float(row[3]) for row in rows], scores, rtol=1e-6)
    _, unknown, off_end = windows(genome, "acceptor", LENGTH, LENGTH * 59 // 141)
    said = capsys.readouterr().out
    assert f"{len(places):,} scored" in said
    assert f"{unknown:,} with a letter other than ACGT, {off_end:,} over the end" in said


@pytest.mark.parametrize("ending", ["bedgraph", "bed.gz", "bw"])
@pytest.mark.parametrize("trouble", [KeyboardInterrupt, DataError("trouble")])
def test_a_scan_that_breaks_off_leaves_nothing(made, tmp_path, monkeypatch, ending, trouble):
    if ending == "bw":
        pytest.importorskip("pybigtools")
    folder, _, model = made
    monkeypatch.setattr("dotadd.genome.scan.ROWS", 50)

    def stop(share):
        if share > 0.5:
            raise trouble

    with pytest.raises(KeyboardInterrupt if trouble is KeyboardInterrupt else DataError):
        scan(model, folder / "g.fa", tmp_path / f"s.{ending}", signal="acceptor", on_progress=stop)
    assert not list(tmp_path.iterdir())


def test_models_that_cannot_scan_are_refused(made, tmp_path):
    folder, _, _ = made
    two = np.array([-1, 1])
    for phi, shape, classes, words in (
        (Linear(), Shape("dense rows", n_features=4), two, "trained on dense rows"),
        (Spectrum(1), Shape("strings", length=9), np.arange(3), "3 classes"),
        (Spectrum(1), Shape("strings", length=1), two, "have 1 letters, too few"),
        (Spectrum(1), Shape("strings", length=9, one_length=False), two, "of different lengths, up to 9"),
    ):
        phi = phi.resolve(shape)
        rows = 1 if len(classes) == 2 else len(classes)
        model = Model(phi, shape, np.zeros((rows, phi.dim)), np.zeros(rows), classes)
        with pytest.raises(ModelError, match=words):
            scan(model, folder / "g.fa", tmp_path / "s.bed", signal="acceptor")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-o s.wig", "s.wig: a track is called"),
        ("-o s.bw.gz", "s.bw.gz: a track is called"),
        ("-o none/s.bed", "does not exist"),
        ("--signal start", "start"),
        ("--before 13", "windows have 14 letters, too few for 13 letters and then the two"),
        ("--before -1", "before is -1"),
        ("--strand x", "strand"),
        ("--jobs 0", "n_jobs is 0"),
        ("--model none", "none: No such file"),
        ("--threshold 1e9 -o s.bw", "no score is above the threshold"),
    ],
)
def test_anything_wrong_is_one_line_and_nothing_is_written(made, tmp_path, monkeypatch, capsys, options, words):
    folder, _, _ = made
    if options.endswith(".bw"):
        pytest.importorskip("pybigtools")
    monkeypatch.chdir(tmp_path)
    given = {"--model": f"{folder}/m.dotadd", "--signal": "acceptor", "-o": "s.bed"}
    given |= dict(zip(options.split()[::2], options.split()[1::2], strict=True))
    assert run(["scan", f"{folder}/g.fa", *(word for pair in given.items() for word in pair)]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "compiling" not in line]
    assert len(lines) == 1
    assert words in lines[0]
    assert not list(tmp_path.iterdir())


def test_a_scan_of_nothing_asks_for_a_file(made, capsys):
    folder, _, _ = made
    assert run(["scan", "--model", f"{folder}/m.dotadd", "--signal", "donor", "-o", "s.bed"]) == 2
    assert "give a FASTA file" in capsys.readouterr().err


def test_a_name_that_a_track_cannot_hold_is_refused(made, tmp_path):
    _, _, model = made
    (tmp_path / "g.fa").write_text('>a"b\n' + "ACAG" * 20)
    with pytest.raises(DotaddError, match=r"s\.bed: cannot be written"):
        scan(model, tmp_path / "g.fa", tmp_path / "s.bed", signal="acceptor", threshold=-1e9)
    assert [path.name for path in tmp_path.iterdir()] == ["g.fa"]


def test_time_left_is_what_was_spent_in_proportion(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with Bar("scanning") as bar:
        for at in range(0, 60, 4):
            now[0] = float(at)
            bar(at / 80)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "dotadd: scanning 15%  12 s, about 68 s left"
    assert len(lines) == 4  # a line every ten seconds, when there is something to tell
