"""Peaks: windows around summits, and background elsewhere with the same GC and repeats; one command trains."""

from __future__ import annotations

import gzip
import random
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow.ipc
import pytest
from naive_genome import fasta, reverse_complement

from dotadd import DataError, DotaddError, check_source
from dotadd import open as open_source
from dotadd.cli import run
from dotadd.genome.background import BINS, STEPS, matched
from dotadd.genome.bed import merged, overlaps, read_bed
from dotadd.genome.files import Genome
from dotadd.genome.peaks import Peaks

MOTIF = "CCACCAGGGGGCGC"


@dataclass(frozen=True)
class Row:
    chromosome: str
    start: int
    end: int
    strand: str
    letters: str
    label: int
    name: str


def rows_of(source):
    rows = []
    for chunk in source.chunks(1000):
        assert chunk.first_row == len(rows)
        columns = {name: column.to_pylist() for name, column in chunk.coordinates.to_arrow().items()}
        places = zip(*(columns[name] for name in ("chromosome", "start", "end", "strand", "name")), strict=True)
        for r, (chromosome, start, end, strand, name) in enumerate(places):
            rows.append(Row(chromosome, start, end, strand, chunk.batch[r].decode(), int(chunk.y[r]), name))
    return rows


def simulated(rng, names=("chr1", "chr2"), size=60_000, peaks=60, length=100):
    """A genome of stretches with more and less GC, with repeats in small letters and a few N; and the lines of a BED
    file of its peaks, which hold the motif on either strand."""
    genome, lines = {}, []
    for name in names:
        letters = []
        for _ in range(size // 1000):
            gc = rng.choice((0.35, 0.45, 0.55))
            letters += rng.choices("ACGT", ((1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2), k=1000)
        for _ in range(peaks):
            at = rng.randrange(length, size - 2 * length)
            for place in (at + rng.randrange(-30, 30) for _ in range(2)):
                letters[place : place + len(MOTIF)] = rng.choice((MOTIF, reverse_complement(MOTIF)))
            lines.append(f"{name}\t{at - 40}\t{at + 40}\tpeak{len(lines)}\t0\t{rng.choice('+-.')}")
        for _ in range(size // 2000):
            at = rng.randrange(size)
            letters[at : at + 300] = "".join(letters[at : at + 300]).lower()
        for _ in range(3):
            at = rng.randrange(size)
            letters[at : at + 20] = "N" * len(letters[at : at + 20])
        genome[name] = "".join(letters)
    return genome, lines


@pytest.fixture
def made(tmp_path):
    """A genome and its peaks, and their files."""
    genome, lines = simulated(random.Random(5))
    (tmp_path / "genome.fa").write_text(fasta(genome))
    (tmp_path / "peaks.bed").write_text("\n".join(lines) + "\n")
    return tmp_path, genome, [line.split("\t") for line in lines]


def bins(genome, row):
    letters = genome[row.chromosome][row.start : row.end]
    gc, small = sum(c in "GCgc" for c in letters), sum(c.islower() for c in letters)
    return gc * BINS // len(letters), small * BINS // len(letters)


def shared(a, b):
    return a.chromosome == b.chromosome and a.start < b.end and b.start < a.end


def test_peaks_are_cut_around_their_summits_on_their_strands(made):
    folder, genome, lines = made
    found = {
        row.name: row for row in rows_of(Peaks(folder / "genome.fa", folder / "peaks.bed", length=90)) if row.label == 1
    }
    expected = {}
    for chromosome, start, end, name, _, strand in lines:
        middle = (int(start) + int(end)) // 2
        letters = genome[chromosome][middle - 45 : middle + 45].upper()
        if "N" not in letters:
            minus = strand == "-"
            letters = reverse_complement(letters) if minus else letters
            expected[name] = Row(chromosome, middle - 45, middle + 45, "-" if minus else "+", letters, 1, name)
    assert found == {name: expected[name] for name in found}
    assert len(expected) - len(found) <= 3, "few are without background"


@pytest.mark.parametrize("each", [1, 3])
def test_background_lies_on_no_peak_no_n_no_excluded_place_and_not_on_itself(made, each):
    folder, genome, lines = made
    away = [Row("chr1", 1000, 9000, "+", "", 0, ""), Row("chr2", 30_000, 40_000, "+", "", 0, "")]
    (folder / "away.bed").write_text(
        "".join(f"{row.chromosome.removeprefix('chr')} {row.start} {row.end}\n" for row in away)
    )
    source = Peaks(
        folder / "genome.fa", folder / "peaks.bed", length=100, negatives=each, exclude=[folder / "away.bed"]
    )
    rows = rows_of(source)
    assert rows == sorted(rows, key=lambda row: (row.chromosome, row.start))
    negatives, positives = ([row for row in rows if row.label == label] for label in (-1, 1))
    peaks = [Row(c, int(start), int(end), "+", "", 0, "") for c, start, end, *_ in lines] + positives
    for k, row in enumerate(negatives):
        letters = genome[row.chromosome][row.start : row.end].upper()
        assert row.letters == (reverse_complement(letters) if row.strand == "-" else letters)
        assert len(row.letters) == 100
        assert not set(row.letters) - set("ACGT")
        assert row.name == f"{row.chromosome}:{row.start}-{row.end}:{row.strand}"
        assert not any(shared(row, other) for other in peaks + away + negatives[k + 1 :])
    assert not any(shared(row, other) for row in positives for other in away)
    counts = source.counts
    lost = [counts.excluded, counts.dropped.unknown, counts.twice, counts.unmatched]
    assert counts.excluded
    assert sum(lost) + len(positives) == len(lines)
    assert counts.missing == each * len(positives) - len(negatives)
    assert counts.steps.sum() == len(negatives)


def test_background_has_the_bins_of_gc_and_repeats_that_the_peaks_have(tmp_path):
    genome, lines = simulated(random.Random(8), size=600_000, peaks=40)
    (tmp_path / "genome.fa").write_text(fasta(genome))
    (tmp_path / "peaks.bed").write_text("\n".join(lines) + "\n")
    source = Peaks(tmp_path / "genome.fa", tmp_path / "peaks.bed", length=80, negatives=2)
    rows = rows_of(source)
    positives, negatives = ([bins(genome, row) for row in rows if row.label == label] for label in (1, -1))
    away = Counter(positives + positives)
    away.subtract(Counter(negatives))
    exact = int(source.counts.steps[0])
    assert exact > 0.9 * len(negatives)
    assert sum(abs(count) for count in away.values()) <= 2 * (2 * len(positives) - exact)
    for chromosome in genome:
        one, other = (sum(row.label == label for row in rows if row.chromosome == chromosome) for label in (1, -1))
        assert one <= other <= 2 * one


def test_tolerance_widens_step_by_step_and_ends(tmp_path):
    """Peaks of 60 % GC; elsewhere there is a stretch of 57 % for the one chromosome, and nothing near for the other."""
    block = "G" * 60 + "A" * 40
    near, far = "G" * 57 + "A" * 43, "A" * 100
    genome = {"near": far * 50 + block + far * 50 + near * 30, "far": far * 50 + block + far * 50}
    (tmp_path / "genome.fa").write_text(fasta(genome))
    (tmp_path / "peaks.bed").write_text("near\t5000\t5100\nfar\t5000\t5100\n")
    source = Peaks(tmp_path / "genome.fa", tmp_path / "peaks.bed", length=100)
    one, other = sorted(rows_of(source), key=lambda row: -row.label)
    assert (one.chromosome, one.letters, other.chromosome) == ("near", block, "near")
    away = abs(bins(genome, one)[0] - bins(genome, other)[0])
    assert 1 <= away < STEPS
    assert source.counts.steps.tolist() == [int(k == away) for k in range(STEPS)]
    assert source.counts.unmatched == 1


def test_each_peak_has_one_window_before_any_has_two():
    letters = np.frombuffer(b"ACGT" * 100, np.uint8)  # room for 4 windows of 100, all alike
    rng = np.random.default_rng(0)
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64))
    for _ in range(20):
        found = matched(letters, np.array([0, 20, 40]), 100, 3, np.array([[0, 400]]), nothing, rng)
        times = np.bincount(found.peak, minlength=3)
        assert len(found.first) < 3 or times.min() == 1
        assert times.max() - times.min() <= 1
        assert np.all(np.diff(found.first) >= 100)


def test_nothing_is_drawn_where_there_is_no_room():
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64))
    letters = np.frombuffer(b"ACGT" * 10, np.uint8)
    for spans, blocked in (([[0, 5]], nothing), ([[0, 40]], (np.array([0]), np.array([40])))):
        found = matched(letters, np.array([3]), 10, 1, np.array(spans), blocked, np.random.default_rng(0))
        assert len(found.first) == 0


def test_merged_intervals_cover_the_same_letters():
    rng = random.Random(3)
    for _ in range(200):
        pairs = [(a, a + rng.randint(1, 9)) for a in rng.choices(range(60), k=rng.randint(0, 8))]
        begin, end = merged(*(np.array([pair[k] for pair in pairs], np.int64) for k in (0, 1)))
        covered = {p for a, b in pairs for p in range(a, b)}
        assert covered == {p for a, b in zip(begin, end, strict=True) for p in range(a, b)}
        assert np.all(begin[1:] > end[:-1])
        first, length = np.arange(70), rng.randint(1, 12)
        touching = [not covered.isdisjoint(range(f, f + length)) for f in first]
        assert overlaps(begin, end, first, length).tolist() == touching


def test_summits_are_in_column_ten_of_narrow_peaks_and_in_the_middle_of_others(tmp_path):
    path = tmp_path / "peaks.bed.gz"
    ten = "chr1\t100\t300\t.\t0\t-\t5.5\t-1\t-1\t"
    lines = ["track name=x", "# so", "browser position", "", "chr1\t100\t301", f"{ten}17", f"{ten}-1",
             "chrX 5 8 a 0 +", "chr1\t100\t300\tb\t0\t+\t100\t300\t0\t2\t10,10\t0,190"]  # fmt: skip
    with gzip.open(path, "wt") as file:
        file.write("\r\n".join(lines))
    bed = read_bed(path)
    assert bed.summit.tolist() == [200, 117, 200, 6, 200]
    assert bed.minus.tolist() == [False, True, True, False, False]
    assert (bed.names, bed.lines.tolist()) == (["", "", "", "a", "b"], [5, 6, 7, 8, 9])
    assert [bed.chromosomes[k] for k in bed.of] == ["chr1"] * 3 + ["chrX", "chr1"]


def test_small_letters_stay_small_where_somebody_asks(tmp_path):
    (tmp_path / "g.fa").write_text(">a\nACGTacgt\nnNrRy-\n")
    assert next(Genome(tmp_path / "g.fa", masked=True).sequences()).letters.tobytes() == b"ACGTacgtNNNNNN"
    assert next(Genome(tmp_path / "g.fa").sequences()).letters.tobytes() == b"ACGTACGTNNNNNN"


def test_peaks_are_a_source(made):
    folder, _, _ = made
    check_source(Peaks(folder / "genome.fa", folder / "peaks.bed", length=60))


def test_what_is_drawn_depends_on_the_seed_and_not_on_the_order_of_the_genome(made):
    folder, genome, _ = made
    (folder / "turned.fa").write_text(fasta(dict(reversed(genome.items()))))
    options = {"length": 70, "holdout": 0.3, "stretch": 5000, "part": "train"}
    first, second, other = (
        set(rows_of(Peaks(folder / name, folder / "peaks.bed", seed=seed, **options)))
        for name, seed in (("genome.fa", 1), ("turned.fa", 1), ("genome.fa", 2))
    )
    assert first == second
    assert first != other


def test_no_letter_is_in_both_parts_and_both_have_background_of_their_own(made):
    folder, _, _ = made
    train = Peaks(folder / "genome.fa", folder / "peaks.bed", length=100, holdout=0.3, stretch=6000, part="train")
    both = rows_of(train), rows_of(train.held_out())
    letters = [{(row.chromosome, p) for row in rows for p in range(row.start, row.end)} for rows in both]
    assert letters[0].isdisjoint(letters[1])
    assert [sum(row.label for row in rows) for rows in both] == [0, 0]
    counts = train.counts
    kept = sum(row.label == 1 for rows in both for row in rows)
    dropped = counts.dropped
    assert counts.peaks == kept + dropped.border + dropped.unknown + dropped.off_end + counts.unmatched + counts.twice
    assert 0.1 < len(both[1]) / sum(map(len, both)) < 0.5


def test_test_chromosomes_are_held_out_whatever_they_are_called(made):
    folder, _, lines = made
    (folder / "other.bed").write_text("".join("\t".join([line[0][3:], *line[1:]]) + "\n" for line in lines))
    train = Peaks(folder / "genome.fa", folder / "other.bed", length=100, test_chromosomes=["2"], part="train")
    assert {row.chromosome for row in rows_of(train)} == {"chr1"}
    assert {row.chromosome for row in rows_of(train.held_out())} == {"chr2"}
    assert train.counts.renamed == {"1": "chr1", "2": "chr2"}


def test_peaks_without_a_window_are_counted_by_reason(tmp_path):
    genome = {"a": "ACGT" * 500}
    genome["a"] = genome["a"][:1000] + "N" + genome["a"][1001:]
    (tmp_path / "g.fa").write_text(fasta(genome))
    (tmp_path / "p.bed").write_text("a\t0\t10\na\t990\t1010\na\t1990\t2000\na\t400\t410\na\t403\t407\na\t600\t610\n")
    (tmp_path / "x.bed").write_text("a\t655\t656\nz\t5\t9\n")
    source = Peaks(tmp_path / "g.fa", tmp_path / "p.bed", length=100, exclude=[tmp_path / "x.bed"])
    rows = rows_of(source)
    counts = source.counts
    assert (counts.dropped.off_end, counts.dropped.unknown, counts.excluded, counts.twice) == (2, 1, 0, 1)
    assert [row.start for row in rows if row.label == 1] == [355, 555]
    (tmp_path / "x.bed").write_text("a\t654\t655\n")
    source = Peaks(tmp_path / "g.fa", tmp_path / "p.bed", length=100, exclude=[tmp_path / "x.bed"])
    assert [row.start for row in rows_of(source) if row.label == 1] == [355]
    assert source.counts.excluded == 1


COMMAND = ["windows", "--fasta", "genome.fa", "--peaks", "peaks.bed", "--length", "100"]


def test_the_same_seed_writes_the_same_bytes(made, monkeypatch, capsys):
    folder, _, _ = made
    monkeypatch.chdir(folder)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        for ending in ("arrow", "fa.gz"):
            options = ["--holdout", "0.3", "--stretch", "6000", "--seed", str(seed), "-o", f"{name}.{ending}"]
            assert run([*COMMAND, *options]) == 0
    for ending in ("arrow", "fa.gz", "holdout.arrow", "holdout.fa.gz"):
        a, b, c = ((folder / f"{name}.{ending}").read_bytes() for name in "abc")
        assert a == b != c


def test_files_of_all_formats_hold_the_same_windows(made, monkeypatch, capsys):
    folder, _, _ = made
    monkeypatch.chdir(folder)
    expected = rows_of(Peaks("genome.fa", "peaks.bed", length=100, test_chromosomes=["chr1"], part="train").held_out())
    for name in ("w.arrow", "w.parquet", "w.fa", "w.fa.gz"):
        assert run([*COMMAND, "--test-chromosomes", "chr1", "-o", name]) == 0
        stem, _, ending = name.partition(".")
        chunk = open_source(f"{stem}.holdout.{ending}").load()
        assert [row.letters for row in expected] == [chunk.batch[r].decode() for r in range(len(chunk))]
        assert [row.label for row in expected] == chunk.y.tolist()
    with pyarrow.ipc.open_file("w.holdout.arrow") as file:
        table = file.read_all()
    assert table.column_names == ["sequence", "label", "name", "chromosome", "start", "end", "strand"]
    names = ("chromosome", "start", "end", "strand", "name")
    found = zip(*(table[name].to_pylist() for name in names), strict=True)
    assert list(found) == [tuple(getattr(row, name) for name in names) for row in expected]
    place = [f"{row.chromosome}:{row.start}-{row.end}:{row.strand}" for row in expected]
    headers = [line for line in (folder / "w.holdout.fa").read_text().splitlines() if line.startswith(">")]
    both = [
        (place if row.label == -1 else f"{row.name} {place}", row) for place, row in zip(place, expected, strict=True)
    ]
    assert headers == [f">{title} label={row.label}" for title, row in both]


def test_one_command_leads_from_peaks_to_a_model_that_finds_others(made, monkeypatch, capsys):
    folder, _, _ = made
    monkeypatch.chdir(folder)
    command = ["train", "--peaks", "peaks.bed", "--fasta", "genome.fa", "--length", "100", "-o", "m.dotadd"]
    for held in (["--test-chromosomes", "chr2"], ["--holdout", "0.4", "--stretch", "6000"]):
        assert run([*command, *held, "--features", "Gkm(8, 6).normalized()"]) == 0
        told = capsys.readouterr().out
        assert float(re.search(r"auROC +(\S+)", told)[1]) > 0.95
        assert re.search(r"matched +[\d,]+ within 0.02", told)
    assert run([*COMMAND, "--seed", "9", "-o", "other.fa"]) == 0
    capsys.readouterr()
    assert run(["evaluate", "m.dotadd", "other.fa"]) == 0
    assert float(re.search(r"auROC +(\S+)", capsys.readouterr().out)[1]) > 0.95


def test_features_are_gapped_k_mers_where_nobody_says_otherwise(made, monkeypatch, capsys):
    folder, _, _ = made
    monkeypatch.chdir(folder)
    command = [
        "train",
        "--peaks",
        "peaks.bed",
        "--fasta",
        "genome.fa",
        "--length",
        "60",
        "--tol",
        "0.5",
        "-o",
        "m.dotadd",
    ]
    assert run(command) == 0
    told = capsys.readouterr()
    assert "features: Gkm().normalized()" in told.err
    assert "Gkm(11, 7).normalized()" in told.out


BAD_LINES = {
    "chr1\t10": "2 columns",
    "chr1\tx\t20": "whole numbers",
    "chr1\t-5\t20": "whole numbers",
    "chr1\t1.5\t20": "whole numbers",
    "chr1\t20\t20": "not before its end",
    "chr1\t30\t20": "not before its end",
    "chr1\t5\t60001": "60,000 letters",
    "chr1\t5\t99999999999999999999999": "beyond any sequence",
    "chr7\t5\t20": "'chr7' is not in genome.fa",
    "chr1\t100\t300\tx\t0\t.\t1\t1\t1\t200": "column 10",
    "chr1\t100\t300\tx\t0\t.\t1\t1\t1\tno": "column 10",
}


@pytest.mark.parametrize(
    ("command", "line"),
    [*(("windows", line) for line in BAD_LINES), ("train", "chr1\t20\t20"), ("train", "chr7\t5\t20")],
)
def test_a_bad_line_is_named_and_nothing_is_written(made, monkeypatch, capsys, command, line):
    folder, _, _ = made
    monkeypatch.chdir(folder)
    with open("peaks.bed", "a") as file:
        file.write(line + "\n")
    before = sorted(folder.iterdir())
    options = [command, "--peaks", "peaks.bed", "--fasta", "genome.fa", "--length", "100"]
    output = ["-o", "out.arrow"] if command == "windows" else ["-o", "m.dotadd", "--features", "Spectrum(3)"]
    assert run([*options, *output]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("dotadd: error: peaks.bed:121: ")
    assert BAD_LINES[line] in told
    assert sorted(folder.iterdir()) == before
    assert run([*options, *output, "--on-bad-row", "skip"]) == 0
    assert "left out 1 bad rows; the first: peaks.bed:121: " in capsys.readouterr().err


def test_a_file_that_was_cut_off_is_refused(made, monkeypatch, capsys):
    folder, _, _ = made
    monkeypatch.chdir(folder)
    whole = gzip.compress((folder / "peaks.bed").read_bytes())
    (folder / "cut.bed.gz").write_bytes(whole[: len(whole) // 2])
    for option in ("--peaks", "--exclude"):
        others = ["--peaks", "peaks.bed"] if option == "--exclude" else []
        assert run(["windows", "--fasta", "genome.fa", *others, option, "cut.bed.gz", "-o", "out.arrow"]) == 2
        assert "cut.bed.gz: the compressed file ends too early" in capsys.readouterr().err
    assert not (folder / "out.arrow").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--test-chromosomes", "chr9"], "'chr9' is not in genome.fa"),
        (["--test-chromosomes", ","], "is empty"),
        (["--test-chromosomes", "chr1,chr2"], "no window of 100 letters around a peak is left in the training part"),
        (["--test-chromosomes", "chr1", "--holdout", "0.2"], "either test chromosomes or a holdout"),
        (["--holdout", "0.001"], "is left in the held-out part"),
        (["--holdout", "1"], "less than 1"),
        (["--negatives", "0"], "at least 1"),
        (["--signal", "donor"], "--signal means nothing with --peaks"),
        (["--sample", "5"], "--sample means nothing with --peaks"),
        (["--exclude", "nowhere.bed"], "nowhere.bed: no such file"),
        (["--length", "0"], "1 or more"),
        (["--length", "2000000"], "at most 131,072"),
        (["--length", "70000"], "120 off an end"),
        (["--holdout-output", "x.arrow"], "needs --holdout"),
    ],
)  # fmt: skip
def test_options_that_cannot_act_are_refused(made, monkeypatch, capsys, options, told):
    folder, _, _ = made
    monkeypatch.chdir(folder)
    usual = COMMAND[:-2] if "--length" in options else COMMAND
    assert run([*usual, *options, "-o", "out.arrow"]) == 2
    out = capsys.readouterr().err
    assert told in out
    assert out.count("\n") == 1
    assert not list(folder.glob("*.arrow"))


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("windows --fasta genome.fa -o out.arrow", "--gff and --signal for splice sites, or --peaks"),
        ("windows --fasta genome.fa --gff x --signal donor --negatives 2 -o out.arrow", "--negatives is for --peaks"),
        ("train --peaks peaks.bed -o m.dotadd", "give it with --fasta"),
        ("train x.svm --peaks peaks.bed --fasta genome.fa -o m.dotadd", "and not both"),
        ("train x.svm --fasta genome.fa -o m.dotadd", "--fasta is for --peaks"),
        ("train --peaks peaks.bed --fasta genome.fa --label y -o m.dotadd", "--label means nothing with --peaks"),
        ("train --peaks peaks.bed --fasta genome.fa --holdout 0.2 --test x -o m.dotadd", "--test is a second file"),
        ("train --peaks peaks.bed --fasta genome.fa --workers 2 -o m.dotadd", "--workers read files"),
        ("train --peaks peaks.bed --fasta genome.fa --cv 3 --group gene -o m.dotadd", "'gene' means nothing"),
    ],
)  # fmt: skip
def test_options_of_commands_that_do_not_go_together(made, monkeypatch, capsys, command, told):
    folder, _, _ = made
    monkeypatch.chdir(folder)
    assert run(command.split()) == 2
    assert told in capsys.readouterr().err


def test_a_genome_with_two_names_for_one_chromosome_is_refused(made):
    folder, genome, _ = made
    (folder / "both.fa").write_text(fasta({"1": genome["chr1"], **genome}))
    with pytest.raises(DataError, match="has '1' and 'chr1'"):
        Peaks(folder / "both.fa", folder / "peaks.bed").drawn()
    (folder / "both.fa").write_text(fasta({**genome, "1": "ACGT"}))
    assert {row.chromosome for row in rows_of(Peaks(folder / "both.fa", folder / "peaks.bed"))} == {"chr1", "chr2"}


def test_a_part_is_named_where_there_are_parts(made):
    folder, _, _ = made
    for options in ({"part": "train"}, {"part": "all", "holdout": 0.2}, {"part": "none"}):
        with pytest.raises(DotaddError, match="part is"):
            Peaks(folder / "genome.fa", folder / "peaks.bed", **options)
