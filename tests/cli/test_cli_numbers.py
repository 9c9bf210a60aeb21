"""Every option that takes a number, given what is none or cannot be: one line, exit code 2, nothing written."""

import os
import types
from typing import Union, get_args, get_origin

import pytest

from dotadd.cli import COMMANDS, app, run

ROWS = "".join(f"{1 if k % 2 else -1} 1:{k % 7}.5 2:{k % 5}\n" for k in range(40))
DNA = "".join(f"{'ACGT' * 3}{'AG' if k % 2 else 'CT'}ACGT\t{k % 2}\n" for k in range(20))
GENOME = ">one\n" + "ACAGTCTTGACC" * 40 + "\n"
CALLED = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\none\t121\t.\tA\tC\t.\t.\t.\n"
GENES = "".join(f"one\t.\texon\t{a}\t{b}\t.\t+\t.\tParent=a\n" for a, b in ((1, 40), (53, 90), (120, 200)))
PEAKS = "one\t90\t100\none\t300\t312\n"

# How to call a command so that an option of it has a meaning, {} standing for the option and its value.
CALLS = {
    "train": "train rows.svm -o out -q {}",
    "train --degree": "train rows.svm -o out -q --kernel poly {}",
    "train --coef0": "train rows.svm -o out -q --kernel poly {}",
    "train --stands-for": "train rows.svm -o out -q --update model {}",
    "train --gamma": "train rows.svm -o out -q --kernel rbf {}",
    "train --negatives": "train --peaks peaks.bed --fasta genome.fa --length 12 --features Spectrum(2) -o out -q {}",
    "train --stretch": "train --peaks peaks.bed --fasta genome.fa --length 12 --features Spectrum(2) -o out -q {} "
    "--holdout 0.5",
    "train --holdout": "train --peaks peaks.bed --fasta genome.fa --length 12 --features Spectrum(2) -o out -q {}",
    "train --length": "train --peaks peaks.bed --fasta genome.fa --features Spectrum(2) -o out -q {}",
    "predict": "predict model rows.svm -o out {}",
    "predict --workers": "predict model rows.svm -o folder {}",
    "evaluate": "evaluate model rows.svm {}",
    "compare": "compare rows.svm -o out.json -q --solvers dcd {}",
    "windows": "windows --fasta genome.fa --gff genes.gff --signal acceptor -o out.arrow {}",
    "windows --length": "windows --fasta genome.fa --gff genes.gff --signal acceptor -o out.arrow --before 3 {}",
    "windows --before": "windows --fasta genome.fa --gff genes.gff --signal acceptor -o out.arrow --length 12 {}",
    "windows --holdout": "windows --fasta genome.fa --gff genes.gff --signal acceptor -o out.arrow --length 12 {}",
    "windows --sample": "windows --fasta genome.fa --gff genes.gff --signal acceptor -o out.arrow --length 12 {}",
    "windows --seed": "windows --fasta genome.fa --gff genes.gff --signal acceptor -o out.arrow --length 12 {}",
    "windows --stretch": "windows --fasta genome.fa --gff genes.gff --signal acceptor -o out.arrow --length 12 {} "
    "--holdout 0.5",
    "windows --negatives": "windows --fasta genome.fa --peaks peaks.bed --length 12 -o out.arrow {}",
    "scan": "scan genome.fa --model sites --signal acceptor -o out.bed {}",
    "scan --workers": "scan genome.fa --model sites --signal acceptor -o folder {}",
    "inspect": "inspect model {}",
    "inspect --rows": "inspect dna --data dna.tsv --column 0 --label 1 {}",
    "inspect --order": "inspect dna --poim out.svg --samples 2 {}",
    "inspect --samples": "inspect dna --poim out.svg --order 1 {}",
    "inspect --jobs": "inspect dna --poim out.svg --order 1 --samples 2 {}",
    "demo": "demo --fast {}",
    "warmup": "warmup {}",
    "tune": "tune rows.svm -q --Cs 2 {}",
    "tune --tol": "tune rows.svm -q --Cs 2 --cv 2 {}",
    "tune --seed": "tune rows.svm -q --Cs 2 --cv 2 {}",
    "tune --jobs": "tune rows.svm -q --Cs 2 --cv 2 {}",
    "tune --max-passes": "tune rows.svm -q --Cs 2 --cv 2 {}",
    "tune --max-time": "tune rows.svm -q --Cs 2 --cv 2 {}",
    "calibrate": "calibrate model rows.svm -o out {}",
    "report": "report model --data rows.svm -o out.html {}",
    "explain": "explain dna dna.tsv --column 0 --label 1 -o out.tsv {}",
    "kmers": "kmers gkm -o weights.tsv {}",
    "variants": "variants calls.vcf --fasta genome.fa --model gkm -o scored.vcf {}",
    "variants --before": "variants calls.vcf --fasta genome.fa --model sites -o scored.vcf {}",
    "variants --distance": "variants calls.vcf --fasta genome.fa --model sites -o scored.vcf {}",
    "variants --before-donor": "variants calls.vcf --fasta genome.fa --model sites --model-donor sites -o out.vcf {}",
}
MADE = (
    "train rows.svm -o model -q",
    "train dna.tsv --column 0 --label 1 --features Spectrum(2) -o dna -q",
    "train dna.tsv --column 0 --label 1 --features Gkm(2,1) -o gkm -q",
    "windows --fasta genome.fa --gff genes.gff --signal acceptor --length 12 --before 4 -o sites.arrow",
    "train sites.arrow --features WeightedDegree(3) -o sites -q --max-passes 9",
)
NO_NUMBER = ("nan", "inf", "-inf", "1e400", "", "many", "0x10", "1,5")
NOT_WHOLE = ("1.9", "1e-3", "99999999999999999999", "-99999999999999999999")
EXTREME = ("-1", "0", "-0.5", "1e-320", "1e300", "-1e300")
LONG_WORK = {("demo", "--seed"), ("demo", "--jobs"), ("warmup", "--jobs")}  # what is allowed there trains for seconds
FEW_MAKE_SENSE = {"--workers", "--order", "--length", "--before", "--gamma", "--holdout", "--stretch"}
FEW_MAKE_SENSE |= {"--checkpoint-every"}


def kind_of(hint):
    """int, float or None, of an annotation such as `int | None`."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return next((kind for kind in (int, float) if kind in options), None)


OPTIONS = [
    (command.__name__, max(argument.names, key=len), kind)
    for command in COMMANDS
    for argument in app[command.__name__].assemble_argument_collection()
    if (kind := float if "--gamma" in argument.names else kind_of(argument.hint)) is not None
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    texts = {"rows.svm": ROWS, "dna.tsv": DNA, "genome.fa": GENOME, "genes.gff": GENES, "peaks.bed": PEAKS}
    texts["calls.vcf"] = CALLED
    for name, text in texts.items():
        (folder / name).write_text(text)
    where = os.getcwd()
    os.chdir(folder)
    try:
        for command in MADE:
            assert run(command.split()) == 0
    finally:
        os.chdir(where)
    return folder


def call(command, option, value):
    words = CALLS.get(f"{command} {option}", CALLS[command]).split()
    at = words.index("{}")
    return [*words[:at], f"{option}={value}", *words[at + 1 :]]


def test_the_walk_meets_every_command_that_takes_numbers():
    without = {"completion", "convert", "doctor"}
    assert {command for command, _, _ in OPTIONS} == {command.__name__ for command in COMMANDS} - without
    assert ("train", "--max-passes", int) in OPTIONS
    assert ("train", "--tol", float) in OPTIONS


@pytest.mark.parametrize("command", ["train", "windows"])
def test_a_stretch_without_a_share_to_hold_out_is_refused(made, monkeypatch, capsys, command):
    monkeypatch.chdir(made)
    words = call(command, "--stretch", "50")
    assert run(words[: words.index("--holdout")]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert "--stretch" in told
    assert "--holdout" in told


@pytest.mark.parametrize(("command", "option", "kind"), OPTIONS)
def test_a_number_that_cannot_be_is_one_line_and_exit_code_2(made, monkeypatch, capsys, command, option, kind):
    monkeypatch.chdir(made)
    before = sorted(os.listdir(made))
    refused = NO_NUMBER + (NOT_WHOLE if kind is int else ())
    allowed = [] if (command, option) in LONG_WORK or option == "--workers" else EXTREME
    if option == "--workers":
        refused += ("0", "-1", "1000000")
    for value in (*refused, *allowed):
        code = run(call(command, option, value))
        out, err = capsys.readouterr()
        lines = [line for line in err.splitlines() if "compiling for this machine" not in line]
        told = f"{command} {option}={value!r}: exit {code}, {lines}"
        assert code == 2 if value in refused else code in (0, 2), told
        if code == 2:
            assert out == "", told
            assert len(lines) == 1, told
            assert lines[0].startswith("dotadd: error: "), told
            assert sorted(os.listdir(made)) == before, told
        for name in set(os.listdir(made)) - set(before):
            os.remove(made / name)


@pytest.mark.parametrize(("command", "option", "kind"), OPTIONS)
def test_a_number_may_be_written_in_any_way(made, monkeypatch, capsys, command, option, kind):
    """Nothing that is a number is refused for how it is written."""
    if (command, option) in LONG_WORK or option in FEW_MAKE_SENSE:
        pytest.skip("takes long, or few numbers make sense")
    monkeypatch.chdir(made)
    before = set(os.listdir(made))
    for value in ("2", "+2", "2.0", "20e-1"):
        assert run(call(command, option, value)) == 0, capsys.readouterr().err
    for name in set(os.listdir(made)) - before:
        os.remove(made / name)
