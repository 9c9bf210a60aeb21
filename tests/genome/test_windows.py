"""Windows: cut as the definition says, true sites where introns end, no letter in both parts, samples of exact size."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import re
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_genome import fasta, gff3, random_genome, random_transcripts, true_sites, windows, with_signals

from dotadd import DataError, DotaddError, LinearSVM, Spectrum, Windows, check_source, convert
from dotadd import open as open_source
from dotadd.cli import run
from dotadd.data.batches import Strings
from dotadd.genome import files as genome_module
from dotadd.genome.cutting import Draw
from dotadd.genome.files import Genome
from dotadd.sources.located import Coordinates, Located


class InSmallChunks(Windows):
    """A few windows in each chunk, so that chunks begin and end anywhere."""

    def chunks(self, nbytes=0):
        return super().chunks(3 * self.length)


def rows_of(source):
    """(sequence, position, strand, letters, label) of all windows of a source."""
    rows, count = [], 0
    for chunk in source.chunks():
        assert chunk.first_row == count
        count += len(chunk)
        at, labels = chunk.coordinates, [None] * len(chunk) if chunk.y is None else chunk.y.tolist()
        for r, label in enumerate(labels):
            strand = "-" if at.minus[r] else "+"
            rows.append((at.names[at.sequence[r]], int(at.position[r]), strand, chunk.batch[r].decode(), label))
    return rows


def expected_rows(genome, signal, length, before, transcripts=None):
    found, _, _ = windows(genome, signal, length, before)
    true = true_sites(genome, transcripts, signal) if transcripts is not None else None
    rows = []
    for window in found:
        place = (window.sequence, window.position, window.strand)
        rows.append((*place, window.letters, None if true is None else 1 if place in true else -1))
    return rows


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A genome of three sequences and its annotation."""
    rng = random.Random(1)
    genome = {f"chr{k}": "".join(rng.choices("ACGT", k=size)) for k, size in enumerate((4000, 900, 2500))}
    transcripts = random_transcripts(rng, genome, 40)
    genome = with_signals(genome, transcripts)
    folder = tmp_path_factory.mktemp("made")
    (folder / "g.fa").write_text(fasta(genome))
    (folder / "g.gff3").write_text(gff3(transcripts, rng))
    return folder, genome, transcripts


def test_windows_keep_the_contract_of_sources(made):
    folder, _, _ = made
    check_source(Windows(folder / "g.fa", folder / "g.gff3", signal="acceptor", length=20))
    check_source(Windows(folder / "g.fa", signal="donor", length=20, holdout=0.3, part="train", stretch=500, sample=40))


@settings(max_examples=40)
@given(
    st.integers(0, 2**32), st.sampled_from(["acceptor", "donor"]), st.integers(2, 40), st.integers(0, 38), st.booleans()
)
def test_windows_are_those_of_the_definition(tmp_path_factory, seed, signal, length, before, small):
    rng = random.Random(seed)
    before = min(before, length - 2)
    genome = random_genome(rng, sequences=3)
    path = tmp_path_factory.mktemp("g") / "g.fa"
    path.write_text(fasta(genome, rng.choice((1, 7, 60, 1000))))
    source = (InSmallChunks if small else Windows)(path, signal=signal, length=length, before=before)
    expected = expected_rows(genome, signal, length, before)
    _, unknown, off_end = windows(genome, signal, length, before)
    if not expected:
        with pytest.raises(DataError, match="has no window"):
            rows_of(source)
        return
    assert rows_of(source) == expected
    assert (source.counts.dropped.unknown, source.counts.dropped.off_end) == (unknown, off_end)
    assert source.counts.windows == len(expected)


@pytest.mark.parametrize("signal", ["acceptor", "donor"])
def test_windows_have_label_1_where_an_intron_ends_or_begins(made, signal):
    folder, genome, transcripts = made
    source = InSmallChunks(folder / "g.fa", folder / "g.gff3", signal=signal, length=12, before=5)
    assert rows_of(source) == expected_rows(genome, signal, 12, 5, transcripts)
    true = true_sites(genome, transcripts, signal)
    assert source.counts.true == sum(row[-1] == 1 for row in rows_of(source)) <= len(true)
    assert len({row[-1] for row in rows_of(source)}) == 2


def test_the_signal_stands_where_coffin_has_it_and_donors_mirror_acceptors(made):
    folder, _, _ = made
    for signal, before, reads in (("acceptor", 59, "AG"), ("donor", 80, "GT")):
        rows = rows_of(Windows(folder / "g.fa", signal=signal))
        assert {len(row[3]) for row in rows} == {141}
        assert {row[3][before : before + 2] for row in rows} == {reads}


def test_true_and_other_ends_of_introns_are_counted(tmp_path):
    #                 1   5    10
    (tmp_path / "g.fa").write_text(">c\nCCCCAGTTAGCTTTCCCC\n>d\nACGT\n")
    exon = "c\t.\texon\t{}\t{}\t.\t{}\t.\tParent={}\n"
    pairs = [(1, 4, 11, 18, "+", "a"), (1, 4, 7, 18, "+", "b"), (1, 3, 9, 18, "+", "c"), (1, 3, 5, 6, "+", "d")]
    text = "".join(exon.format(a, b, s, t) + exon.format(c, d, s, t) for a, b, c, d, s, t in pairs)
    (tmp_path / "g.gff").write_text(text)
    source = Windows(tmp_path / "g.fa", tmp_path / "g.gff", signal="acceptor", length=4, before=1)
    assert [(row[1], row[-1]) for row in rows_of(source)] == [(5, 1), (9, 1), (11, -1)]
    assert (source.counts.sequences, source.counts.not_annotated, source.counts.introns) == (2, 1, 4)
    assert source.counts.not_canonical == 2  # one ends with TT, one has a single letter


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_lines_of_any_length_and_small_buffers_give_the_same(made, tmp_path, monkeypatch, compress):
    _, genome, _ = made
    expected = {name: text.encode() for name, text in genome.items()}
    monkeypatch.setattr(genome_module, "BUFFER", 17)
    for width in (1, 16, 17, 10**6):
        path = tmp_path / f"g{width}"
        path.write_bytes(compress(("\n" + fasta(genome, width).replace("\n", "\r\n").lower()).encode()))
        assert {s.name: s.letters.tobytes() for s in Genome(path).sequences()} == expected


def test_several_files_are_read_as_one_genome(made, tmp_path):
    folder, genome, _ = made
    paths = []
    for name, text in genome.items():
        paths.append(tmp_path / name)
        paths[-1].write_text(fasta({name: text})[:-1])
    assert rows_of(Windows(paths, signal="donor", length=9)) == rows_of(
        Windows(folder / "g.fa", signal="donor", length=9)
    )


def test_progress_runs_from_0_to_1(made):
    folder, _, _ = made
    told = []
    rows_of(Windows(folder / "g.fa", signal="donor", on_progress=told.append))
    assert told == sorted(told)
    assert 0 < told[0] <= told[-1] == 1


@pytest.mark.parametrize("seed", range(5))
def test_no_letter_of_the_genome_is_in_both_parts(made, seed):
    folder, genome, transcripts = made
    options = {"signal": "acceptor", "length": 15, "before": 6, "holdout": 0.3, "stretch": 200, "seed": seed}
    train = InSmallChunks(folder / "g.fa", folder / "g.gff3", part="train", **options)
    parts = {"train": rows_of(train), "holdout": rows_of(train.held_out())}
    again = Windows(folder / "g.fa", folder / "g.gff3", part="holdout", **options)
    assert rows_of(again) == parts["holdout"]
    every, _, _ = windows(genome, "acceptor", 15, 6)
    span = {(w.sequence, w.position): {(w.sequence, w.first + k) for k in range(15)} for w in every}
    letters = {part: set().union(*(span[row[:2]] for row in rows)) for part, rows in parts.items()}
    assert not letters["train"] & letters["holdout"]
    # What is in neither part has been counted, and nothing else is missing or changed.
    union = sorted(parts["train"] + parts["holdout"])
    assert set(union) <= set(expected_rows(genome, "acceptor", 15, 6, transcripts))
    border = train.counts.dropped.border + again.counts.dropped.border
    assert len(every) == len(set(union)) + border
    assert border > 0
    assert 0.15 < len(parts["holdout"]) / len(union) < 0.45


def test_short_sequences_are_held_out_as_a_whole_in_their_share(tmp_path):
    rng = random.Random(0)
    genome = {f"c{k}": "".join(rng.choices("ACGT", k=50)) + "CAGC" for k in range(100)}
    (tmp_path / "g.fa").write_text(fasta(genome))
    source = Windows(tmp_path / "g.fa", signal="acceptor", length=4, before=1, holdout=0.2, part="holdout")
    held = {row[0] for row in rows_of(source)}
    assert len(held) in (20, 21)
    assert held != {f"c{k}" for k in range(20)}


def test_another_seed_holds_out_and_draws_others(made):
    folder, _, _ = made

    def rows(**options):
        return rows_of(Windows(folder / "g.fa", signal="donor", length=9, **options))

    held = [rows(part="holdout", holdout=0.3, stretch=100, seed=seed) for seed in (0, 0, 1)]
    drawn = [rows(sample=50, seed=seed) for seed in (0, 0, 1)]
    for first, same, other in (held, drawn):
        assert first == same != other


@pytest.mark.parametrize("part", ["all", "train"])
def test_a_sample_is_so_many_of_the_windows_of_its_part_in_order(made, part):
    folder, _, _ = made
    options = {
        "signal": "acceptor",
        "length": 9,
        "part": part,
        "holdout": 0.3 if part == "train" else 0,
        "stretch": 500,
    }
    every = rows_of(Windows(folder / "g.fa", **options))
    for size in (1, 40, len(every)):
        source = InSmallChunks(folder / "g.fa", sample=size, **options)
        drawn = rows_of(source)
        assert len(drawn) == size == source.counts.windows
        assert drawn == [row for row in every if row in set(drawn)]
    with pytest.raises(DotaddError, match=f"there are {len(every):,} windows to draw from"):
        rows_of(Windows(folder / "g.fa", sample=len(every) + 1, **options))


def test_each_row_is_drawn_equally_often():
    total, size, runs = 40, 10, 2000
    drawn = sum(np.bincount(Draw(size, total, seed).rows(0, total), minlength=total) for seed in range(runs))
    share = size / total
    assert np.abs(drawn - runs * share).max() < 5 * np.sqrt(runs * share * (1 - share))


def test_rows_are_drawn_alike_whatever_the_pieces_in_which_they_are_asked_for(monkeypatch):
    monkeypatch.setattr("dotadd.genome.cutting._BLOCK", 7)
    sample = Draw(5, 1000, 3)
    pieces = [sample.rows(first, first + 10) + first for first in range(0, 1000, 10)]
    assert len(np.concatenate(pieces)) == 5
    assert np.concatenate(pieces).tolist() == sample.rows(0, 1000).tolist()


def test_a_file_of_windows_reads_back_with_labels_and_without_a_warning(made, tmp_path, capsys):
    folder, genome, transcripts = made
    out = tmp_path / "out.arrow"
    arguments = f"windows --fasta {folder}/g.fa --gff {folder}/g.gff3 --signal acceptor --length 13 -o {out}"
    assert run(arguments.split()) == 0
    expected = expected_rows(genome, "acceptor", 13, 5, transcripts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chunk = open_source(out).load()
    assert [chunk.batch[r].decode() for r in range(len(chunk))] == [row[3] for row in expected]
    assert chunk.y.tolist() == [row[4] for row in expected]
    table = pa.ipc.open_file(out).read_all()
    assert table.column_names == ["sequence", "label", "chromosome", "position", "strand"]
    places = zip(*(table[name].to_pylist() for name in ("chromosome", "position", "strand")), strict=True)
    assert list(places) == [row[:3] for row in expected]
    said = capsys.readouterr().out
    true = sum(row[4] == 1 for row in expected)
    assert f"{len(expected):,} windows, {true:,} true sites and {len(expected) - true:,} decoys" in said


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_names_of_sequences_that_come_later_are_written(made, tmp_path, ending):
    folder, _, _ = made
    source = InSmallChunks(folder / "g.fa", signal="acceptor", length=13)
    convert(source, tmp_path / f"out.{ending}")
    if ending == "arrow":
        names = pa.ipc.open_file(tmp_path / "out.arrow").read_all()["chromosome"].to_pylist()
    else:
        names = pa.parquet.read_table(tmp_path / "out.parquet")["chromosome"].to_pylist()
    assert names == [row[0] for row in rows_of(source)]
    assert len(open_source(tmp_path / f"out.{ending}").load()) == len(names)


def test_the_command_writes_both_parts(made, tmp_path, capsys):
    folder, _, _ = made
    common = f"windows --fasta {folder}/g.fa --gff {folder}/g.gff3 --signal donor --length 13 --holdout 0.3"
    assert run(f"{common} --stretch 300 --sample 100 --seed 3 -o {tmp_path}/a.arrow".split()) == 0
    options = {"signal": "donor", "length": 13, "holdout": 0.3, "stretch": 300, "seed": 3}
    for path, more in {"a.arrow": {"part": "train", "sample": 100}, "a.holdout.arrow": {"part": "holdout"}}.items():
        read = open_source(tmp_path / path).load()
        rows = rows_of(Windows(folder / "g.fa", folder / "g.gff3", **options, **more))
        assert [read.batch[r].decode() for r in range(len(read))] == [row[3] for row in rows]
        assert read.y.tolist() == [row[4] for row in rows]
    assert "over the border of a held-out stretch" in capsys.readouterr().out
    common += " --stretch 300 --seed 3"
    assert run(f"{common} -o {tmp_path}/b.arrow --holdout-output {tmp_path}/test.parquet".split()) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.arrow", "a.holdout.arrow", "b.arrow", "test.parquet"]
    assert len(open_source(tmp_path / "test.parquet").load()) == len(read)


def test_a_model_is_trained_without_a_file(made):
    folder, _, _ = made
    source = Windows(folder / "g.fa", folder / "g.gff3", signal="acceptor", length=13, sample=200)
    from_source = LinearSVM(Spectrum(2), random_state=0).fit(source)
    chunk = source.load()
    texts = [chunk.batch[r].decode() for r in range(len(chunk))]
    from_list = LinearSVM(Spectrum(2), random_state=0).fit(texts, chunk.y)
    assert np.array_equal(from_source.coef_, from_list.coef_)


FASTA = ">a\nACGTACAGTAGGTAAC\n>b\nACCTAGGGT\n"
GFF = "a\t.\texon\t1\t3\t.\t+\t.\tParent=t\na\t.\texon\t9\t12\t.\t+\t.\tParent=t\n"


@pytest.mark.parametrize(
    ("files", "options", "words"),
    [
        (
            {"g.gff": GFF.replace("a\t", "chra\t")},
            "",
            "g.gff: no sequence name agrees with g.fa.* 'chra', there 'a' .*chr",
        ),
        ({"g.gff": GFF.replace("a\t", "x\t")}, "", "g.gff: no sequence name agrees with g.fa: .* 'x', there 'a'$"),
        ({"g.gff": GFF.replace("\t12\t", "\t17\t")}, "", "g.gff:2: the exon ends at 17, but sequence 'a' has 16"),
        ({"g.gff": GFF.replace("\t9\t", "\t90\t")}, "", "g.gff:2: the exon begins at 90"),
        ({"g.gff": GFF.split("\n")[0]}, "", "g.gff: has no introns"),
        ({"g.gff": "a b c"}, "", "g.gff:1: a line of GFF3"),
        ({"g.gff": None}, "", "g.gff: no such file"),
        ({"g.fa": None}, "", "g.fa: no such file"),
        ({"g.fa": ""}, "", "g.fa: has no sequences"),
        ({"g.fa": "\nACGT\n>a\nACGT\n"}, "", "g.fa:2: expected a header"),
        ({"g.fa": ">a\nACGT\nAC1T\n"}, "", "g.fa:3: '1' is no letter of a sequence"),
        ({"g.fa": "> \nACGT\n"}, "", "g.fa:1: the header names no sequence"),
        ({"g.fa": FASTA.replace(">b", ">a")}, "", "g.fa:3: a second sequence is called 'a'"),
        ({"g.fa": FASTA.replace("A", "N")}, "", "g.fa: has no window of 4 letters"),
        ({}, "--signal start", "start"),
        ({}, "--length 1", "length is 1; it has to be a whole number, 2 or more"),
        ({}, "--before 3", "a window of 4 letters is too short for 3 letters and then the two"),
        ({}, "--before -1", "before is -1"),
        ({}, "--holdout -0.2", "holdout is -0.2"),
        ({}, "--holdout 1", "holdout is 1.0"),
        ({}, "--holdout 0.1 --seed 1", "part has no window .* give a smaller stretch"),
        ({}, "--holdout 0.5 --stretch 0", "stretch is 0"),
        ({}, "--holdout 0.5 --holdout-output out.arrow", "cannot hold both parts"),
        ({}, "--holdout-output x.arrow", "--holdout-output needs --holdout"),
        ({}, "--sample 0", "sample is 0"),
        ({}, "--sample 1000", "sample is 1,000, but there are"),
        ({}, "--seed -1", "seed is -1"),
        ({}, "-o none/out.arrow", "does not exist"),
    ],
)
def test_anything_wrong_is_one_line_and_nothing_is_written(tmp_path, monkeypatch, capsys, files, options, words):
    monkeypatch.chdir(tmp_path)
    for name, text in ({"g.fa": FASTA, "g.gff": GFF} | files).items():
        if text is not None:
            (tmp_path / name).write_text(text)
    before = sorted(tmp_path.rglob("*"))
    given = {"--fasta": "g.fa", "--gff": "g.gff", "--signal": "acceptor", "--length": "4", "-o": "out.arrow"}
    words_given = options.split()
    given |= dict(zip(words_given[::2], words_given[1::2], strict=True))
    assert run(["windows", *(word for pair in given.items() for word in pair)]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "compiling" not in line]
    assert len(lines) == 1
    assert re.search(words, lines[0])
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"signal": "start"}, "signal is 'start'; it has to be one of acceptor, donor"),
        ({"part": "test"}, "part is 'test'"),
        ({"holdout": 0.2}, "say which part"),
        ({"part": "holdout"}, "needs a holdout above 0"),
        ({"length": 4.0}, "length is 4.0"),
    ],
)
def test_a_source_that_makes_no_sense_is_refused(options, words):
    with pytest.raises(DotaddError, match=words):
        Windows("g.fa", **({"signal": "acceptor"} | options))


def test_an_interrupted_run_leaves_nothing(made, tmp_path, monkeypatch):
    folder, _, _ = made

    def interrupt(self, share):
        if share == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("dotadd.cli.progress.Bar.__call__", interrupt)
    out = tmp_path / "out.arrow"
    assert run(f"windows --fasta {folder}/g.fa --gff {folder}/g.gff3 --signal donor --length 9 -o {out}".split()) == 130
    assert not list(tmp_path.iterdir())


def test_rows_of_a_genome_keep_file_and_line_when_some_are_taken():
    at = Coordinates(("c",), np.zeros(3, np.int32), np.arange(3), np.zeros(3, np.bool_))
    lines, files = np.array([5, 6, 7]), ((0, "a.fa"), (2, "b.fa"))
    chunk = Located(Strings.from_list(["A", "C", "G"]), None, None, 0, None, lines, files, coordinates=at)
    assert str(chunk.take(np.array([2])).error(0, "no")) == "b.fa:7: no"
    assert str(chunk.slice(1, 3).error(1, "no")) == "b.fa:7: no"
    assert str(chunk.slice(1, 3).error(0, "no")) == "a.fa:6: no"


def test_windows_around_sites_are_the_same_in_fasta(tmp_path, monkeypatch, capsys):
    rng = random.Random(4)
    genome = random_genome(rng, 2, 900)
    transcripts = random_transcripts(rng, genome)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "genome.fa").write_text(fasta(genome))
    (tmp_path / "genes.gff").write_text(gff3(transcripts, rng))
    options = ["--gff", "genes.gff", "--signal", "donor", "--length", "20"]
    assert run(["windows", "--fasta", "genome.fa", *options, "-o", "sites.fa"]) == 0
    expected = rows_of(Windows("genome.fa", "genes.gff", signal="donor", length=20))
    lines = (tmp_path / "sites.fa").read_text().splitlines()
    shown = [(f">{name}:{at - 1}-{at + 1}:{s} label={label}", letters) for name, at, s, letters, label in expected]
    assert list(zip(lines[::2], lines[1::2], strict=True)) == shown


def test_every_position_is_a_candidate_and_true_where_an_intron_ends_on_its_strand(made):
    folder, genome, transcripts = made
    rows = rows_of(Windows(folder / "g.fa", folder / "g.gff3", signal="acceptor", length=15, before=6, every=True))
    found, _, _ = windows(genome, "acceptor", 15, 6, every=True)
    true = true_sites(genome, transcripts, "acceptor")
    places = [(window.sequence, window.position, window.strand) for window in found]
    assert [row[:4] for row in rows] == [(*p, w.letters) for p, w in zip(places, found, strict=True)]
    assert [row[4] for row in rows] == [1 if place in true else -1 for place in places]
    assert sum(place in true for place in places) > 10


def test_the_command_trains_on_the_sites_of_a_genome_and_measures_on_what_is_held_out(made, tmp_path, capsys):
    folder, _, _ = made
    genome = ["--fasta", str(folder / "g.fa"), "--gff", str(folder / "g.gff3"), "--signal", "donor"]
    shape = ["--holdout", "0.3", "--stretch", "500", "--length", "20"]
    model, file = str(tmp_path / "m.dotadd"), str(tmp_path / "w.arrow")
    common = ["--features", "WeightedDegree(3)", "--tol", "1e-5", "--json", "--seed", "3"]
    assert run(["train", *genome, *shape, *common, "-o", model]) == 0
    told = json.loads(capsys.readouterr().out)
    options = {"signal": "donor", "length": 20, "holdout": 0.3, "stretch": 500, "seed": 3}
    source = Windows(folder / "g.fa", folder / "g.gff3", part="train", **options)
    rows = rows_of(source)
    assert told["training"]["rows"] == told["sites"]["windows"] == len(rows)
    assert run(["windows", *genome, *shape, "--seed", "3", "-o", file]) == 0
    capsys.readouterr()
    held_out = str(tmp_path / "w.holdout.arrow")
    assert (
        run(
            [
                "train",
                file,
                *common,
                "-o",
                str(tmp_path / "f.dotadd"),
                "--label",
                "label",
                "--column",
                "sequence",
                "--test",
                held_out,
            ]
        )
        == 0
    )
    other = json.loads(capsys.readouterr().out)
    assert told["training"]["primal"] == pytest.approx(other["training"]["primal"], rel=1e-4)
    assert told["test"]["rows"] == other["test"]["rows"] > 100


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--signal", "donor"], "give it with --fasta, and its introns with --gff"),
        (["--signal", "donor", "--fasta", "g.fa", "--gff", "g.gff3", "--negatives", "2"], "--negatives is for --peaks"),
        (["--signal", "donor", "--fasta", "g.fa", "--peaks", "p.bed"], "--peaks or --signal, and not both"),
        (["x.svm", "--every"], "--every is for --signal"),
        (["x.svm", "--signal", "donor"], "give a data file to train on, or --peaks or --signal, and not both"),
        (["--signal", "donor", "--fasta", "g.fa", "--gff", "g.gff3", "--label", "y"], "--label means nothing"),
    ],
)
def test_options_that_would_not_act_on_a_genome_are_refused_in_one_line(tmp_path, capsys, options, complaint):
    assert run(["train", *options, "-o", str(tmp_path / "m.dotadd")]) != 0
    said = capsys.readouterr().err.strip()
    assert complaint in said
    assert sum("error" in line for line in said.splitlines()) == 1
