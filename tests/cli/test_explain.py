"""dotadd explain, from files to files."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import dotadd
from dotadd.cli import run

RNG = np.random.default_rng(1)
COLOURED = r"\x1b\[[0-9;]*(48;|\b4[0-7]|\b10[0-7])[0-9;]*m"
WORDS = ["the", "meeting", "report", "budget", "team", "lunch"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models of mails, of DNA and of a table, with some data of each."""
    made = tmp_path_factory.mktemp("explain")
    mails = [" ".join(RNG.choice(WORDS, 8)) + (" free <script>alert(1)</script>" if k % 2 else "") for k in range(40)]
    lines = [json.dumps({"text": mail, "label": "spam" if k % 2 else "ham"}) for k, mail in enumerate(mails)]
    (made / "mails.jsonl").write_text("\n".join(lines) + "\n")
    dna = ["".join(RNG.choice(list("ACGT"), 30)) for _ in range(40)]
    dna = [text[:10] + "TGACTCA" + text[17:] if k % 2 else text for k, text in enumerate(dna)]
    (made / "dna.fa").write_text("".join(f">s{k} label={k % 2}\n{text}\n" for k, text in enumerate(dna)))
    places = [("chr2:100-130(+)", dna[1]), ("x::chr2:110-140(-)", dna[3]), ("chr1:6-35", dna[5])]
    (made / "places.fa").write_text("".join(f">{name}\n{text}\n" for name, text in places))
    (made / "cells.csv").write_text(
        "label,job,age\n" + "".join(f"{k % 2},{'nurse' if k % 2 else 'cook'},{20 + k}\n" for k in range(40))
    )
    for line in (
        "train mails.jsonl --column text --features WordNGrams((1,2)).tfidf() -o spam -q",
        "train dna.fa --features Spectrum(4).normalized() -o dna -q",
        "train dna.fa --features Gkm(5,4).normalized() -o gkm -q",
        "train cells.csv --features Number('age').scaled('max')+Category('job') -o cells -q",
    ):
        assert called(made, line) == 0
    return made


def called(folder, line):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return run(line.split())


def test_mails_are_shown_with_the_words_that_made_them(folder, capsys):
    assert called(folder, "explain spam mails.jsonl --rows 2 --largest 3") == 0
    shown = capsys.readouterr().out
    assert "row 1: score" in shown
    assert "row 3: score" not in shown
    assert "free" in shown
    assert "\x1b" not in shown  # no colours where there is no terminal


def test_a_terminal_has_colours_and_no_control_characters_of_others(folder, capsys, monkeypatch):
    mail = json.dumps({"text": "free \x1b[31m \x07 lunch <script>", "label": "spam"})
    (folder / "hostile.jsonl").write_text(mail + "\n")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert called(folder, "explain spam hostile.jsonl") == 0
    shown = capsys.readouterr().out
    assert re.search(COLOURED, shown)
    assert "\x1b[31m " not in shown
    assert "\x07" not in shown
    assert "\\x1b[31m" in re.sub(r"\x1b\[[0-9;]*m", "", shown)
    monkeypatch.setenv("NO_COLOR", "1")
    assert called(folder, "explain spam hostile.jsonl") == 0
    assert not re.search(COLOURED, capsys.readouterr().out)


def test_a_page_is_well_formed_and_escapes_what_users_bring(folder):
    assert called(folder, "explain spam mails.jsonl -o why.html --rows 4") == 0
    page = (folder / "why.html").read_text()
    ElementTree.fromstring(page.partition("\n")[2])
    assert "<script" not in page
    assert "&lt;script&gt;" in page or "&lt;</span>" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")


@pytest.mark.parametrize("model", ["dna", "gkm"])
@pytest.mark.parametrize("method", ["auto", "ism"])
def test_arrays_are_those_that_modisco_reads(folder, model, method):
    assert called(folder, f"explain {model} dna.fa -o out.npz --method {method}") == 0
    with np.load(folder / "out.npz") as file:
        assert file.files == ["arr_0"]
        adds = file["arr_0"]
    with np.load(folder / "out.onehot.npz") as file:
        present = file["arr_0"]
    assert adds.shape == present.shape == (40, 4, 30)
    assert (present.sum(axis=1) == 1).all()
    loaded = dotadd.load(folder / model)
    found = loaded.explain(folder / "dna.fa", method=method)
    np.testing.assert_allclose((adds * present).sum(axis=1), [row.letters for row in found], rtol=1e-6, atol=1e-7)
    if method == "auto":
        scores = loaded.decision_function(folder / "dna.fa")
        np.testing.assert_allclose((adds * present).sum(axis=(1, 2)) + loaded.intercept[0], scores, atol=1e-5)


def test_tables_of_letters_and_logos(folder):
    assert called(folder, "explain dna dna.fa -o out.tsv --method ism --rows 3") == 0
    lines = [line.split("\t") for line in (folder / "out.tsv").read_text().splitlines()]
    assert lines[0] == ["row", "name", "position", "letter", "adds", "change_A", "change_C", "change_G", "change_T"]
    assert len(lines) == 1 + 3 * 30
    assert lines[1][:3] == ["1", "s0", "1"]
    assert float(lines[1][5 + "ACGT".index(lines[1][3])]) == 0.0
    assert called(folder, "explain gkm dna.fa -o out.svg --rows 3") == 0
    picture = ElementTree.fromstring((folder / "out.svg").read_text())
    assert [child.tag.rpartition("}")[2] for child in picture] == ["svg"] * 3
    assert called(folder, "explain dna dna.fa -o out.jsonl.gz") == 0


def test_json_lines_sum_to_the_score(folder):
    assert called(folder, "explain spam mails.jsonl -o out.jsonl --rows 5 --largest 1000 --class ham") == 0
    lines = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert len(lines) == 5
    for line in lines:
        assert line["class"] == "ham"
        total = sum(feature["contribution"] for feature in line["features"]) + line["intercept"]
        assert total == pytest.approx(line["score"], abs=1e-5)
        (text,) = line["texts"]
        assert sum(text["adds"]) + line["intercept"] == pytest.approx(line["score"], abs=1e-5)


def test_cells_are_shown_by_column(folder, capsys):
    assert called(folder, "explain cells cells.csv --rows 2") == 0
    shown = capsys.readouterr().out
    assert "job=nurse" in shown
    assert "age" in shown


def test_a_track_has_each_letter_at_its_place(folder):
    tools = pytest.importorskip("pybigtools")
    assert called(folder, "explain dna places.fa -o out.bw") == 0
    rows = [row.letters for row in dotadd.load(folder / "dna").explain(folder / "places.fa")]
    with tools.open(str(folder / "out.bw")) as track:
        assert track.chroms() == {"chr1": 35, "chr2": 140}
        np.testing.assert_allclose(track.values("chr1", 5, 35), rows[2], atol=1e-6)
        there = track.values("chr2", 100, 140)
    np.testing.assert_allclose(there[:10], rows[0][:10], atol=1e-6)
    np.testing.assert_allclose(there[30:], rows[1][::-1][20:], atol=1e-6)
    np.testing.assert_allclose(there[10:30], (rows[0][10:] + rows[1][::-1][:20]) / 2, atol=1e-6)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("explain dna", "give a data file"),
        ("explain dna bad.fa", "letter 'X' is not in the alphabet"),
        ("explain gkm bad.fa", "is no nucleotide"),
        ("explain spam mails.jsonl -o out.npz", "letters and positions of sequences"),
        ("explain spam mails.jsonl -o out.svg", "letters and positions of sequences"),
        ("explain spam mails.jsonl --method ism", "letters of sequences"),
        ("explain spam mails.jsonl --method matching", "gapped k-mers"),
        ("explain spam mails.jsonl --class eggs", "no class 'eggs'; it has ham, spam"),
        ("explain dna dna.fa -o out.bw", "names such as chr1:100-250"),
        ("explain dna short.fa -o out.bw", "a place of 100 letters, and the sequence has 8"),
        ("explain dna dna.fa -o out.docx", ".npz, .bw"),
        ("explain cells dna.fa", "the data is strings"),
        ("explain none dna.fa", "none"),
    ],
)
def test_bad_input_is_one_clear_line(folder, capsys, line, said):
    (folder / "bad.fa").write_text(">a\nACGXACGT\n")
    (folder / "short.fa").write_text(">chr1:100-200\nACGTACGT\n")
    assert called(folder, line) == 2
    shown = capsys.readouterr().err.strip()
    assert said in shown
    assert len(shown.splitlines()) == 1
