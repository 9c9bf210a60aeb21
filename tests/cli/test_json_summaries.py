"""`--json`: one object on standard output that says what the summary for people says, and nothing else there."""

import json
import os
import subprocess
import sys

import pytest
import test_cli_numbers as walk
from test_cli_numbers import made  # noqa: F401  # the folder of small files and models

from dotadd.cli import COMMANDS, app, run
from dotadd.model.linear import load

FOR_PEOPLE = {"predict", "report", "demo", "warmup", "completion"}  # rows, a page, a show, progress, a script
CALLS = {
    "train": "train rows.svm -o out --test rows.svm",
    "train -C auto": "train rows.svm -o out -C auto --Cs 2 --cv 2",
    "train --kernel": "train rows.svm -o out --kernel rbf",
    "train --peaks": "train --peaks peaks.bed --fasta genome.fa --length 12 --features Spectrum(2) -o out",
    "tune": "tune rows.svm --Cs 2 --cv 2",
    "evaluate": "evaluate model rows.svm",
    "calibrate": "calibrate model rows.svm -o out --threshold recall=0.5",
    "convert": "convert rows.svm out.arrow",
    "windows": "windows --fasta genome.fa --gff genes.gff --signal acceptor --length 12 --before 4 -o out.arrow",
    "windows --peaks": "windows --fasta genome.fa --peaks peaks.bed --length 12 -o out.arrow",
    "scan": "scan genome.fa --model sites --signal acceptor --before 4 -o out.bed",
    "variants": "variants calls.vcf --fasta genome.fa --model gkm --random 0 -o out.vcf",
    "inspect": "inspect model",
    "explain": "explain dna dna.tsv --column 0 --label 1 --rows 2",
    "explain -o": "explain dna dna.tsv --column 0 --label 1 -o out.tsv",
    "kmers": "kmers gkm -o out.tsv",
    "compare": "compare rows.svm -o out.json --solvers dcd",
    "doctor": "doctor",
}


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


@pytest.fixture
def told(made, monkeypatch, capsys):  # noqa: F811
    monkeypatch.chdir(made)

    def tell(call):
        assert run([*CALLS[call].split(), "--json"]) == 0, capsys.readouterr().err
        out, err = capsys.readouterr()
        for line in err.splitlines():
            assert line.startswith("dotadd: ")
        found = json.loads(out, parse_constant=refuse)
        assert isinstance(found, dict)
        assert found
        return found

    yield tell
    for path in made.glob("out*"):
        path.unlink()


def test_every_command_with_a_summary_has_the_option():
    names = {command.__name__ for command in COMMANDS}
    with_it = {name for name in names for one in app[name].assemble_argument_collection() if "--json" in one.names}
    assert with_it == names - FOR_PEOPLE
    assert {call.split()[0] for call in CALLS} == with_it


@pytest.mark.parametrize("call", CALLS)
def test_standard_output_is_one_json_object(told, call):
    told(call)


def test_the_numbers_are_those_of_the_model_and_the_files(told, made):  # noqa: F811
    trained = told("train")
    model = load("out")
    assert trained["training"]["gap"] == model.training["gap"]
    assert trained["test"]["accuracy"] == pytest.approx(model.score("rows.svm"))
    assert trained["interrupted"] is False
    assert told("train -C auto")["choice"]["C"] == load("out").training["C"]
    evaluated = told("evaluate")
    assert evaluated["accuracy"] == pytest.approx(load("model").score("rows.svm"))
    assert evaluated["rows"] == walk.ROWS.count("\n")
    assert told("calibrate")["threshold"]["value"] == load("out").threshold.value
    converted = told("convert")
    assert (converted["rows"], converted["bytes"]) == (walk.ROWS.count("\n"), (made / "out.arrow").stat().st_size)
    assert told("scan")["written"] == len((made / "out.bed").read_text().splitlines())
    assert told("kmers")["lmers"] == len((made / "out.tsv").read_text().splitlines())
    assert told("variants")["scored"] == 1
    assert [row["score"] for row in told("explain")["rows"]] == pytest.approx(
        load("dna").decision_function([line.split("\t")[0] for line in walk.DNA.splitlines()[:2]]), abs=1e-6
    )


@pytest.mark.parametrize("call", ["evaluate", "explain", "inspect", "doctor"])
def test_no_color_is_obeyed_and_force_color_as_well(made, monkeypatch, capsys, call):  # noqa: F811
    """Colours are escapes that begin with ESC; dim and bold are none, but nobody asked for those in a pipe either."""
    monkeypatch.chdir(made)
    words = CALLS[call].split()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert run(words) == 0
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(words) == 0
    assert not colours(capsys.readouterr().out)
    monkeypatch.delenv("FORCE_COLOR")
    assert run(words) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_help_has_no_colours_either():
    code = "from dotadd.cli import run; run(['--help'])"
    for environment, coloured in ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False):
        clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm-256color"}
        shown = subprocess.run([sys.executable, "-c", code], env=clean | environment, capture_output=True, text=True)
        assert bool(colours(shown.stdout)) is coloured


def colours(text):
    """Numbers of SGR sequences that set a colour: 30 to 49 and 90 to 107."""
    found = [int(number) for part in text.split("\x1b[")[1:] for number in part.split("m")[0].split(";") if number]
    return [number for number in found if 30 <= number < 50 or 90 <= number < 108]
