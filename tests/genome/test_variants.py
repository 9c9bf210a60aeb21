"""Variants: scores are those of two whole sequences, however a variant is written; all else stays as it was."""

from __future__ import annotations

import gzip
import random

import numpy as np
import pytest
from naive_genome import fasta
from naive_variants import delta, effect, usual

import dotadd
from dotadd import DataError, Gkm, LinearSVM, MismatchSpectrum, Spectrum, WeightedDegree
from dotadd.cli import run
from dotadd.features.base import Shape
from dotadd.features.lmer_counts import LmerCounts
from dotadd.genome.alleles import SkipReason
from dotadd.genome.deltasvm import DeltaSVM
from dotadd.genome.files import Genome
from dotadd.genome.simulate import SITE, splice_windows
from dotadd.genome.splicing import SiteModel, Splicing
from dotadd.genome.variants import score_variants
from dotadd.model.linear import Model
from dotadd.model.probability import Calibration

LENGTH, BEFORE, DISTANCE = 17, 6, 9
HEAD = (
    "##fileformat=VCFv4.2\n##contig=<ID=chr1>\n##contig=<ID=chr2>\n"
    "##INFO=<ID=AC,Number=A,Type=Integer,Description=\"Some, of 'them'\">\n"
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
)
COLUMNS = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO"


def a_genome(rng, size=3000):
    """Letters with short repeats, in which insertions and deletions can be written in several ways."""
    text = ""
    while len(text) < size:
        text += rng.choice("ACGT") * rng.choice([1, 1, 1, 4]) + rng.choice(["", "", "AGAG", "CTCTCT", "GTGT"])
    return text


def some_variants(rng, text, count, margin=60):
    """(pos, ref, alts), of all kinds, sorted."""
    found = []
    for _ in range(count):
        at = rng.randrange(margin, len(text) - margin)
        ref = text[at : at + rng.choice([1, 1, 1, 2, 3, 7])]
        alts = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            kind = rng.choice(["letter", "more", "less", "any"])
            new = "".join(rng.choice("ACGT") for _ in range(rng.randrange(1, 6)))
            alts.append({"letter": new[0] + ref[1:], "more": ref + new, "less": ref[:1], "any": new}[kind])
        found.append((at + 1, ref, [alt for alt in alts if alt != ref] or ["A" if ref != "A" else "C"]))
    return sorted(found, key=lambda one: one[0])


def model_of(phi, length, seed=0, one_length=True):
    shape = Shape("strings", length=length, one_length=one_length)
    phi = phi.resolve(shape)
    w = np.random.default_rng(seed).standard_normal(phi.dim).astype(np.float32)
    return Model(phi, shape, w, np.array([0.25]), np.array([-1, 1]))


def vcf(variants, name="chr1", info="."):
    lines = [f"{name}\t{pos}\t.\t{ref}\t{','.join(alts)}\t.\tPASS\t{info}\n" for pos, ref, alts in variants]
    return HEAD + COLUMNS + "\n" + "".join(lines)


def infos(text):
    """Of each line, the entries of INFO by name, as lists."""
    rows = [line.split("\t")[7] for line in text.splitlines() if not line.startswith("#")]
    pairs = [[entry.partition("=") for entry in row.split(";")] for row in rows]
    return [{name: value.split(",") for name, _, value in row} for row in pairs]


def scored(folder, calls, scorer, genome, **more):
    (folder / "g.fa").write_text(fasta(genome))
    (folder / "calls.vcf").write_text(calls)
    found = score_variants(folder / "calls.vcf", Genome(folder / "g.fa"), scorer, folder / "out.vcf", **more)
    return found, (folder / "out.vcf").read_text()


@pytest.fixture(scope="module")
def sites():
    return model_of(WeightedDegree(3), LENGTH)


@pytest.mark.parametrize("signal", ["acceptor", "donor"])
def test_gain_and_loss_are_those_of_two_whole_sequences(tmp_path, sites, signal):
    rng = random.Random(3)
    text = a_genome(rng)
    variants = some_variants(rng, text, 250)
    scorer = Splicing([SiteModel(sites, "m", signal, BEFORE)], distance=DISTANCE)
    found, out = scored(tmp_path, vcf(variants), scorer, {"1": text}, random=50)
    floor, gains = scorer.models[0].floor, 0
    assert found.scored == sum(len(alts) for _, _, alts in variants)
    for (pos, ref, alts), row in zip(variants, infos(out), strict=True):
        for k, alt in enumerate(alts):
            shape = {"signal": signal, "length": LENGTH, "before": BEFORE, "distance": DISTANCE}
            gain, loss, gain_at, loss_at = effect(sites, floor, text, pos, ref, alt, **shape)
            assert float(row["DOTADD_GAIN"][k]) == pytest.approx(gain, abs=6e-5)
            assert float(row["DOTADD_LOSS"][k]) == pytest.approx(loss, abs=6e-5)
            assert row["DOTADD_GAIN_POS"][k] == ("." if gain_at is None else str(gain_at))
            assert row["DOTADD_LOSS_POS"][k] == ("." if loss_at is None else str(loss_at))
            gains += gain > 0.0
    assert gains > 20


def test_two_models_have_the_fields_of_spliceai_and_each_its_own_numbers(tmp_path):
    rng = random.Random(4)
    text = a_genome(rng)
    variants = some_variants(rng, text, 60)
    acceptors, donors = model_of(WeightedDegree(3), LENGTH), model_of(WeightedDegree(2), LENGTH + 3, seed=1)
    for model in (acceptors, donors):  # whose floor does not depend on how far the other one looks
        model.calibration = Calibration("sigmoid", (np.array([[0.7], [-0.4]]),))
    both = Splicing([SiteModel(acceptors, "m", "acceptor"), SiteModel(donors, "d", "donor")], distance=DISTANCE)
    _, out = scored(tmp_path, vcf(variants), both, {"1": text}, random=0)
    ones = []
    for model in both.models:
        alone = Splicing([SiteModel(model.model, "m", model.cut.signal)], distance=DISTANCE)
        ones.append(infos(scored(tmp_path, vcf(variants), alone, {"1": text}, random=0)[1]))
    assert "ALLELE|SYMBOL|DS_AG|DS_AL|DS_DG|DS_DL|DP_AG|DP_AL|DP_DG|DP_DL" in out
    for (_, _, alts), row, acceptor, donor in zip(variants, infos(out), *ones, strict=True):
        for k, alt in enumerate(alts):
            numbers = [one[f"DOTADD_{name}"][k] for one in (acceptor, donor) for name in ("GAIN", "LOSS")]
            places = [one[f"DOTADD_{name}_POS"][k] for one in (acceptor, donor) for name in ("GAIN", "LOSS")]
            assert row["DOTADD_SPLICE"][k].split("|") == [alt, ".", *numbers, *places]


def test_probabilities_are_compared_where_the_model_has_them(tmp_path, sites):
    rng = random.Random(5)
    text = a_genome(rng)
    sure = model_of(WeightedDegree(3), LENGTH)
    sure.calibration = Calibration("sigmoid", (np.array([[0.7], [-0.4]]),))
    scorer = Splicing([SiteModel(sure, "m", "acceptor", BEFORE)], distance=DISTANCE)
    _, out = scored(tmp_path, vcf(some_variants(rng, text, 40)), scorer, {"1": text}, random=20)
    assert "(probabilities)" in out
    assert scorer.models[0].floor == 0.0

    class Sure:
        def decision_function(self, rows):
            return sure.predict_proba(rows)[:, 1]

    variants = some_variants(random.Random(6), text, 40)
    _, out = scored(tmp_path, vcf(variants), scorer, {"1": text}, random=0)
    for (pos, ref, alts), row in zip(variants, infos(out), strict=True):
        shape = {"signal": "acceptor", "length": LENGTH, "before": BEFORE, "distance": DISTANCE}
        gain, loss, _, _ = effect(Sure(), 0.0, text, pos, ref, alts[0], **shape)
        assert float(row["DOTADD_GAIN"][0]) == pytest.approx(gain, abs=6e-5)
        assert float(row["DOTADD_LOSS"][0]) == pytest.approx(loss, abs=6e-5)


@pytest.mark.parametrize(
    ("phi", "order", "both_strands"),
    [
        (Gkm(5, 3), 5, True),
        (Gkm(4, 2, strands="one").normalized(), 4, False),
        (LmerCounts(5, 3, 2), 5, True),  # as models of LS-GKM have it
        (MismatchSpectrum(4, 1, weights=(1.0, 0.3)), 4, False),
    ],
)
def test_delta_is_that_of_the_table_that_kmers_writes(tmp_path, phi, order, both_strands):
    rng = random.Random(7)
    text = a_genome(rng)
    variants = some_variants(rng, text, 150)
    model = model_of(phi, 20, one_length=False)
    model.save(tmp_path / "m.dotadd")
    assert run(["kmers", str(tmp_path / "m.dotadd"), "-o", str(tmp_path / "w.tsv")]) == 0
    weights = {}
    for line in (tmp_path / "w.tsv").read_text().splitlines():
        word, weight = line.split("\t")
        weights[word] = float(weight)
        if both_strands:
            weights[word[::-1].translate(str.maketrans("ACGT", "TGCA"))] = float(weight)
    _, out = scored(tmp_path, vcf(variants), DeltaSVM(model, "m"), {"1": text}, random=0)
    for (pos, ref, alts), row in zip(variants, infos(out), strict=True):
        for k, alt in enumerate(alts):
            expected = delta(text, pos, ref, alt, weights, order)
            assert float(row["DOTADD_DELTA"][k]) == pytest.approx(expected, rel=1e-4, abs=2e-4)


def test_equal_variants_score_alike_however_they_are_written(tmp_path, sites):
    rng = random.Random(8)
    text = a_genome(rng)
    several = []  # the same three times: as usual, with letters around it, and moved to the right as far as it goes
    for pos, ref, alts in some_variants(rng, text, 120, margin=100):
        pos, ref, alt = usual(text, pos, ref, alts[0])
        left, right = rng.randrange(4), rng.randrange(4)
        end = pos - 1 + len(ref)
        wide = text[pos - 1 - left : pos - 1], text[end : end + right]
        start, a, b = pos, ref, alt
        while min(len(a), len(b)) == 1 and len(a) != len(b) and a[0] == b[0]:
            longer, after = max(a, b, key=len), text[start - 1 + len(a)]
            if longer[1] != after:
                break
            start, a, b = start + 1, a[1:] + after, b[1:] + after
        several.append([(pos, ref, alt), (pos - left, wide[0] + ref + wide[1], wide[0] + alt + wide[1]), (start, a, b)])
    assert any(one[0] != one[2] for one in several)
    scorers = [Splicing([SiteModel(sites, "m", "acceptor")], distance=DISTANCE), DeltaSVM(model_of(Gkm(4, 2), 20), "g")]
    for scorer in scorers:
        ways = []
        for k in range(3):
            calls = vcf([(pos, ref, [alt]) for pos, ref, alt in (one[k] for one in several)])
            ways.append(infos(scored(tmp_path, calls, scorer, {"1": text}, random=30)[1]))
        assert ways[0] == ways[1] == ways[2]


def test_quantile_is_the_share_of_random_changes_that_score_less(tmp_path):
    rng = random.Random(9)
    text = a_genome(rng)
    scorer = DeltaSVM(model_of(Gkm(4, 2), 20), "g")
    variants = [(k, text[k - 1], [alt for alt in "ACGT" if alt != text[k - 1]]) for k in range(100, 1500)]
    found, out = scored(tmp_path, vcf(variants), scorer, {"1": text}, random=4000, seed=3)
    rows = infos(out)
    strengths = np.abs([float(value) for row in rows for value in row["DOTADD_DELTA"]])
    quantiles = np.array([float(value) for row in rows for value in row["DOTADD_Q"]])
    assert found.random == 4000
    order = np.argsort(strengths)
    assert (np.diff(quantiles[order]) >= -1e-4).all()
    assert np.abs(np.sort(quantiles) - np.linspace(0, 1, len(quantiles))).max() < 0.06  # all changes of half the genome
    _, again = scored(tmp_path, vcf(variants), scorer, {"1": text}, random=4000, seed=3)
    _, other = scored(tmp_path, vcf(variants), scorer, {"1": text}, random=4000, seed=4)
    assert again == out != other


def test_what_is_skipped_is_counted_and_keeps_its_place(tmp_path, sites):
    text = a_genome(random.Random(10), 1000) + "N" + a_genome(random.Random(11), 500)
    wrong = "ACGT".replace(text[299], "")[0]
    at = text[499]
    other = "ACGT".replace(at, "")[0]
    lines = [
        ("chr1", 300, wrong, text[299], SkipReason.MISMATCH),
        ("chr1", 500, at, f"<DEL>,{other}", SkipReason.SYMBOLIC),
        ("chr1", 500, at, "*", SkipReason.STAR),
        ("chr1", 500, at, f"{at}[chr2:1[", SkipReason.BREAKEND),
        ("chr1", 500, at, f".{at}", SkipReason.BREAKEND),
        ("chr1", 500, at, ".", SkipReason.NO_ALT),
        ("chr1", 500, at, f"{at}NN", SkipReason.FOREIGN),
        ("chr1", 3, text[2], f"{text[2]}A", SkipReason.OFF_END),
        ("chr1", 0, "N", "A", SkipReason.OFF_END),
        ("chr1", 1000, text[999], f"{text[999]}{other}", SkipReason.UNKNOWN),
        ("chr1", 500, at, at + "ACGT" * 3000, SkipReason.LONG),
        ("chrUn", 5, "A", "C", SkipReason.NO_CHROMOSOME),
        *[("chr1", k, text[k - 1], "ACGT".replace(text[k - 1], "")[0], SkipReason.NONE) for k in range(600, 620)],
    ]
    calls = HEAD + COLUMNS + "\n" + "".join(f"{c}\t{p}\t.\t{r}\t{a}\t.\t.\tAC=1\n" for c, p, r, a, _ in lines)
    scorer = Splicing([SiteModel(sites, "m", "acceptor")], distance=DISTANCE)
    found, out = scored(tmp_path, calls, scorer, {"1": text}, random=10)
    expected = {reason: sum(one[4] == reason for one in lines) for reason in SkipReason}
    expected[SkipReason.NONE] += 1  # beside the symbolic one
    assert dict(found.reasons) == expected
    assert found.alleles == found.scored + sum(count for count, _ in found.skipped())
    rows = infos(out)
    assert rows[1]["DOTADD_GAIN"][0] == "." != rows[1]["DOTADD_GAIN"][1]
    assert rows[0]["DOTADD_Q"] == ["."]
    assert found.not_indexed


def test_every_other_byte_stays_as_it_was(tmp_path, sites):
    text = a_genome(random.Random(12))
    letters = [text[k] for k in (199, 299, 399)]
    other = "ACGT".replace(letters[0], "")[0]
    lines = [
        f"chr1\t200\trs1;rs2\t{letters[0].lower()}\t{other}\t1e-3\tq10;s50\tAC=1;FLAG\tGT:X\t0|1:é\t.\r\n",
        f"chr1\t300\t.\t{letters[1]}\t{letters[1]}A\t.\t.\t.\tGT\t./.\n",
        f"chr1\t400\t.\t{letters[2]}\t<INS>\t.\t.\tEND=450",
    ]
    calls = HEAD + COLUMNS + "\tFORMAT\tone\ttwo\n" + "".join(lines)
    (tmp_path / "g.fa").write_text(fasta({"1": text}))
    (tmp_path / "calls.vcf").write_bytes(calls.encode())
    scorer = Splicing([SiteModel(sites, "m", "acceptor")], distance=DISTANCE)
    score_variants(tmp_path / "calls.vcf", Genome(tmp_path / "g.fa"), scorer, tmp_path / "out.vcf", random=5)
    out = (tmp_path / "out.vcf").read_bytes().decode()
    kept = []
    for line in out.splitlines(keepends=True):
        if line.startswith(("##dotadd=", "##INFO=<ID=DOTADD_")):
            continue
        columns = line.split("\t")
        if not line.startswith("#"):
            left = ";".join(part for part in columns[7].rstrip("\r\n").split(";") if not part.startswith("DOTADD_"))
            columns[7] = (left or ".") + columns[7][len(columns[7].rstrip("\r\n")) :]
        kept.append("\t".join(columns))
    assert "".join(kept) == calls + "\n"


def test_output_is_the_same_for_any_number_of_threads_and_any_way_of_compression(tmp_path, sites):
    rng = random.Random(13)
    text = a_genome(rng, 60_000)
    calls = vcf(some_variants(rng, text, 3000)).encode()
    (tmp_path / "g.fa").write_text(fasta({"1": text}))
    (tmp_path / "calls.vcf").write_bytes(calls)
    (tmp_path / "calls.vcf.gz").write_bytes(gzip.compress(calls))
    outs = set()
    for name, jobs in (("calls.vcf", 1), ("calls.vcf", 2), ("calls.vcf.gz", 2)):
        scorer = Splicing([SiteModel(sites, "m", "acceptor")], distance=DISTANCE)
        out = tmp_path / "out.vcf.gz"
        score_variants(tmp_path / name, Genome(tmp_path / "g.fa"), scorer, out, random=300, n_jobs=jobs)
        outs.add(out.read_bytes() + (tmp_path / "out.vcf.gz.tbi").read_bytes())
    assert len(outs) == 1
    scorer = Splicing([SiteModel(sites, "m", "acceptor")], distance=DISTANCE)
    score_variants(tmp_path / "calls.vcf", Genome(tmp_path / "g.fa"), scorer, tmp_path / "out.vcf", random=300)
    assert gzip.decompress((tmp_path / "out.vcf.gz").read_bytes()) == (tmp_path / "out.vcf").read_bytes()


def test_pysam_reads_file_and_index_and_bcf_goes_both_ways(tmp_path, sites):
    pysam = pytest.importorskip("pysam")
    rng = random.Random(14)
    genome = {"1": a_genome(rng, 60_000), "2": a_genome(rng, 20_000)}
    (tmp_path / "g.fa").write_text(fasta(genome))
    body = [vcf(some_variants(rng, text, 900), f"chr{name}").split("INFO\n")[1] for name, text in genome.items()]
    (tmp_path / "calls.vcf").write_text(HEAD + COLUMNS + "\n" + "".join(body))
    outs = {}
    for out, calls in (("out.vcf.gz", "calls.vcf"), ("out.bcf", "calls.vcf"), ("again.vcf.gz", "out.bcf")):
        scorer = Splicing([SiteModel(sites, "m", "acceptor")], distance=DISTANCE, name=out[0].upper())
        source = tmp_path / calls
        score_variants(source, Genome(tmp_path / "g.fa"), scorer, tmp_path / out, name=out[0].upper(), random=100)
        with pysam.VariantFile(str(tmp_path / out)) as file:
            assert file.header.info["O_GAIN"].number == "A"
            rows = [(one.chrom, one.pos, one.ref, one.alts, one.info["O_GAIN"]) for one in file]
            outs[out] = [(*row[:4], tuple(round(value, 3) for value in row[4])) for row in rows]
            for name, low, high in (("chr1", 0, 60_000), ("chr1", 16_300, 16_500), ("chr2", 7_000, 19_000)):
                of_name = [row for row in rows if row[0] == name]
                expected = [row[1] for row in of_name if row[1] <= high and row[1] - 1 + len(row[2]) > low]
                assert [one.pos for one in file.fetch(name, low, high)] == expected
                assert expected
    assert outs["out.vcf.gz"] == outs["out.bcf"] == outs["again.vcf.gz"]


def test_changes_of_a_true_site_lose_more_than_changes_elsewhere(tmp_path):
    windows, y = splice_windows(6000, positives=0.3, seed=1)
    svm = LinearSVM("WeightedDegree(8)", C=0.1, random_state=0).fit(windows, y)
    held, truth = splice_windows(400, positives=0.5, seed=2)
    rng = random.Random(15)
    text, places = "", []
    for row in np.flatnonzero(truth == 1)[:100]:
        text += "".join(rng.choice("ACGT") for _ in range(400))
        places.append(len(text) + SITE)
        text += held[int(row)].decode()
    text += "".join(rng.choice("ACGT") for _ in range(400))
    at_sites = [(p + k + 1, text[p + k], [c for c in "ACGT" if c != text[p + k]]) for p in places for k in (0, 1)]
    elsewhere = [(p - 200, text[p - 201], [c for c in "ACGT" if c != text[p - 201]]) for p in places]
    variants = sorted(at_sites + elsewhere)
    svm.save(tmp_path / "m.dotadd")
    scorer = Splicing([SiteModel(dotadd.load(tmp_path / "m.dotadd"), "m", "acceptor")])
    _, out = scored(tmp_path, vcf(variants), scorer, {"1": text}, random=200)
    losses = {
        one[0]: [float(loss) for loss in row["DOTADD_LOSS"]] for one, row in zip(variants, infos(out), strict=True)
    }
    true = np.array([losses[one[0]] for one in at_sites]).ravel()
    other = np.array([losses[one[0]] for one in elsewhere]).ravel()
    area = np.mean(true[:, None] > other) + 0.5 * np.mean(true[:, None] == other)
    assert area > 0.9


BAD = {
    "columns": (HEAD + COLUMNS + "\nchr1\t5\t.\tA\tC\n", "calls.vcf:7: a line of VCF has 8 columns or more"),
    "position": (HEAD + COLUMNS + "\nchr1\tfive\t.\tA\tC\t.\t.\t.\n", "calls.vcf:7: POS has to be a whole number"),
    "empty": (HEAD + COLUMNS + "\nchr1\t5\t.\tA\t\t.\t.\t.\n", "calls.vcf:7: REF and ALT"),
    "header": ("chr1\t5\t.\tA\tC\t.\t.\t.\n", "calls.vcf:1: is no VCF file"),
    "no columns": (HEAD, "no line that begins with #CHROM"),
    "twice": (HEAD + '##INFO=<ID=DOTADD_GAIN,Number=A,Type=Float,Description="">\n' + COLUMNS + "\n", "--name"),
    "genome": (vcf([(k, "ACGT"[k % 4], ["T" if k % 4 < 3 else "A"]) for k in range(50, 90)]), "of another genome"),
    "chromosome": (vcf([(50, "A", ["C"])], "chr7"), "no chromosome is in"),
}


@pytest.mark.parametrize("which", BAD)
def test_bad_files_are_one_line_and_nothing_is_written(tmp_path, capsys, sites, which):
    calls, complaint = BAD[which]
    sites.save(tmp_path / "m.dotadd")
    (tmp_path / "g.fa").write_text(fasta({"1": "ACCA" * 60}))
    (tmp_path / "calls.vcf").write_text(calls)
    options = ["--fasta", str(tmp_path / "g.fa"), "--model", str(tmp_path / "m.dotadd"), "--random", "5"]
    assert run(["variants", str(tmp_path / "calls.vcf"), *options, "-o", str(tmp_path / "out.vcf.gz")]) == 2
    said = capsys.readouterr().err.strip()
    assert complaint in said
    assert "\n" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls.vcf", "g.fa", "m.dotadd"]


def test_truncated_files_foreign_models_and_names_are_refused(tmp_path, capsys, sites):
    text = a_genome(random.Random(16), 20_000)
    (tmp_path / "g.fa").write_text(fasta({"1": text}))
    calls = vcf(some_variants(random.Random(17), text, 400)).encode()
    (tmp_path / "calls.vcf").write_bytes(calls)
    (tmp_path / "cut.vcf.gz").write_bytes(gzip.compress(calls)[:-200])
    sites.save(tmp_path / "m.dotadd")
    model_of(Spectrum(2, alphabet="protein"), LENGTH).save(tmp_path / "protein")
    model_of(Gkm(3, 2), LENGTH).save(tmp_path / "gkm")
    before = sorted(path.name for path in tmp_path.iterdir())
    for calls_name, model, out, more, complaint in (
        ("cut.vcf.gz", "m.dotadd", "out.vcf.gz", [], "ends too early"),
        ("calls.vcf", "protein", "out.vcf.gz", [], "not the letters of DNA"),
        ("calls.vcf", "m.dotadd", "out.txt", [], ".vcf, .vcf.gz or .bcf"),
        ("calls.vcf", "gkm", "out.vcf", ["--model-donor", str(tmp_path / "m.dotadd")], "no --model-donor"),
        ("calls.vcf", "m.dotadd", "out.vcf", ["--before-donor", "3"], "--model-donor"),
        ("calls.vcf", "m.dotadd", "out.vcf", ["--name", "a b"], "--name"),
    ):
        options = ["--fasta", str(tmp_path / "g.fa"), "--model", str(tmp_path / model), *more, "--random", "5"]
        assert run(["variants", str(tmp_path / calls_name), *options, "-o", str(tmp_path / out)]) == 2
        assert complaint in capsys.readouterr().err
        assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_unsorted_files_have_no_index_and_lose_that_of_an_earlier_one(tmp_path, sites):
    text = a_genome(random.Random(18))
    variants = some_variants(random.Random(19), text, 20)
    (tmp_path / "g.fa").write_text(fasta({"1": text}))
    for some, indexed in ((variants, True), (variants[::-1], False)):
        (tmp_path / "calls.vcf").write_text(vcf(some))
        scorer = Splicing([SiteModel(sites, "m", "acceptor")], distance=DISTANCE)
        out = tmp_path / "out.vcf.gz"
        found = score_variants(tmp_path / "calls.vcf", Genome(tmp_path / "g.fa"), scorer, out, random=5)
        assert (tmp_path / "out.vcf.gz.tbi").exists() == indexed == (found.not_indexed == "")


def test_a_file_without_variants_and_a_genome_without_letters_are_written_as_they_are(tmp_path, sites):
    (tmp_path / "calls.vcf").write_text(vcf([]))
    for letters in ("ACGT" * 50, ""):
        (tmp_path / "g.fa").write_text(f">1\n{letters}\n")
        scorer = Splicing([SiteModel(sites, "m", "acceptor")], distance=DISTANCE)
        out = tmp_path / "out.vcf.gz"
        found = score_variants(tmp_path / "calls.vcf", Genome(tmp_path / "g.fa"), scorer, out, random=5)
        assert found.lines == 0
        assert gzip.decompress(out.read_bytes()).decode().endswith(COLUMNS + "\n")


def test_bcf_needs_chromosomes_in_the_header(tmp_path, capsys, sites):
    pytest.importorskip("pysam")
    text = a_genome(random.Random(20))
    (tmp_path / "g.fa").write_text(fasta({"9": text}))
    sites.save(tmp_path / "m.dotadd")
    (tmp_path / "calls.vcf").write_text(vcf(some_variants(random.Random(21), text, 5), "chr9"))
    options = ["--fasta", str(tmp_path / "g.fa"), "--model", str(tmp_path / "m.dotadd"), "--random", "5"]
    before = sorted(path.name for path in tmp_path.iterdir())
    assert run(["variants", str(tmp_path / "calls.vcf"), *options, "-o", str(tmp_path / "out.bcf")]) == 2
    assert "cannot be written as BCF" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_missing_file_is_told(sites):
    with pytest.raises(DataError, match="no such file"):
        score_variants("none.vcf", Genome("g.fa"), Splicing([SiteModel(sites, "m", "acceptor")]), "out.vcf")
