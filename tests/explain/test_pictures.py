"""Logos and pages: they parse, letters are as high as what they add, and what users bring is text."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dotadd import BagOfWords, LinearSVM, Spectrum
from dotadd.errors import DotaddError
from dotadd.explain.explanation import ExplainedText
from dotadd.explain.html import characters, segments
from dotadd.explain.logo import HIGH, logo, logos

PATHS = "{http://www.w3.org/2000/svg}path[@transform]"


def heights(picture):
    """How high the letters of a logo are, and where they begin."""
    for path in ElementTree.fromstring(picture).iterfind(f".//{PATHS}"):
        top, tall = re.fullmatch(r"translate\(\S+ (\S+)\) scale\(\S+ (\S+)\)", path.get("transform")).groups()
        yield float(top), 100.0 * float(tall)


def test_letters_are_as_high_as_what_they_add():
    adds = np.array([1.0, 0.5, -1.0, 0.25, 0.0])
    found = list(heights(logo("ACGTA", adds)))
    assert [tall for _, tall in found] == pytest.approx([HIGH / 2 * value for value in (1.0, 0.5, 1.0, 0.25)], abs=0.02)
    zero = found[0][0] + found[0][1]
    assert all(top + tall == pytest.approx(zero, abs=0.03) for top, tall in (found[0], found[1], found[3]))
    assert found[2][0] == pytest.approx(zero, abs=0.03)  # downwards


@pytest.mark.parametrize("letters", ["", "A", "acgtn" * 70, "MKV*X<&", "AC\x1b\x00"])
def test_any_sequence_is_well_formed(letters):
    random = np.random.default_rng(0)
    picture = logo(letters, random.normal(size=len(letters)), "<b>&\x1b")
    ElementTree.fromstring(picture)
    ElementTree.fromstring(logos([(letters, np.zeros(len(letters)), "")] * 2))


def test_nothing_of_a_text_is_lost_and_characters_have_what_their_bytes_have():
    text = "naïve \udcff<é>".encode("utf-8", "surrogateescape")
    adds = np.arange(len(text), dtype=float)
    letters, theirs = characters(ExplainedText(text, adds))
    assert "".join(letters) == "naïve \\xff<é>"
    assert theirs.sum() == adds.sum()
    assert theirs[2] == adds[2] + adds[3]
    assert "".join(part for part, _ in segments(ExplainedText(text, adds))) == "".join(letters)


def test_notebooks_and_pages_escape_text(tmp_path):
    texts = [
        "good <script>alert(1)</script> day",
        "bad \x1b[31m & night",
        "",
        "\udcff bad".encode("utf-8", "surrogateescape"),
    ]
    svm = LinearSVM(BagOfWords(), C=1.0).fit(texts[:2] * 5, [0, 1] * 5)
    found = svm.explain(texts)
    for shown in (found._repr_html_(), found[0]._repr_html_()):
        ElementTree.fromstring(shown)
        assert "<script" not in shown
    found.to_html(tmp_path / "x.html", "<script>")
    page = (tmp_path / "x.html").read_text()
    assert "<script" not in page
    assert "\x1b" not in page
    ElementTree.fromstring(page.partition("\n")[2])


def test_a_logo_of_a_row_is_also_a_file(tmp_path):
    svm = LinearSVM(Spectrum(2), C=1.0).fit(["ACGTAC", "GGGGCC"] * 5, [0, 1] * 5)
    found = svm.explain(["ACGGT"])
    assert found.logo(0, tmp_path / "x.svg") == (tmp_path / "x.svg").read_text()
    vectors = LinearSVM(C=1.0).fit(np.eye(4), [0, 1, 0, 1]).explain(np.eye(4))
    with pytest.raises(DotaddError, match="sequences"):
        vectors.logo()
    with pytest.raises(DotaddError, match="alphabet"):
        vectors.arrays()
