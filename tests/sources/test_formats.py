"""One table of formats, which all that lists them agrees with."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from fuzz import formats as fuzzed
from samples import SAMPLES, Y

from dotadd.cli.compare import compare
from dotadd.cli.train import train
from dotadd.errors import DotaddError
from dotadd.model import predictions
from dotadd.sources import open as open_source
from dotadd.sources.convert import convert
from dotadd.sources.formats import FOLDERS, FORMATS, format_of

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "what_is_there.md").read_text()


def test_every_format_has_a_sample_and_a_fuzzer():
    assert set(SAMPLES) == {*FORMATS, *FOLDERS}
    assert set(FORMATS) <= set(fuzzed.FORMATS)
    assert {"image", "texts"} <= set(fuzzed.FORMATS)  # of folders


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_told_by_its_ending_and_by_how_it_begins(tmp_path, name):
    path = SAMPLES[name](tmp_path)
    data = path.read_bytes()
    for ending in FORMATS[name].endings:
        other = tmp_path / f"other{ending.upper()}"
        other.write_bytes(data)
        assert format_of(str(other)) == name
    (tmp_path / "data").write_bytes(data)
    assert format_of(str(tmp_path / "data")) == name
    source = open_source(tmp_path / "data")
    assert type(source) is FORMATS[name].source_class
    assert len(source.load()) == len(Y)


def test_no_two_formats_share_an_ending():
    endings = [ending for format in FORMATS.values() for ending in format.endings]
    assert len(set(endings)) == len(endings)


@pytest.mark.parametrize("name", [*FORMATS, *FOLDERS])
def test_an_option_is_taken_by_the_formats_whose_class_has_it_and_refused_by_others(tmp_path, name):
    format = FORMATS.get(name) or FOLDERS[name]
    path = SAMPLES[name](tmp_path)
    taken = {field.name for field in dataclasses.fields(format.source_class)}
    for option, value in {"zero_based": True, "weight": "w", "labels": "labels.txt", "semiring": "real"}.items():
        if option in taken:
            assert getattr(open_source(path, **{option: value}), option) == value
        else:
            with pytest.raises(DotaddError, match=f"{option}= has no meaning for {name}|for folders of"):
                open_source(path, **{option: value})


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_convert_writes_what_can_be_read_again_or_refuses_the_name(tmp_path, format):
    for ending in format.endings:
        for path in (tmp_path / f"x{ending}", tmp_path / f"x{ending.upper()}"):
            if format.examples:
                convert(open_source(["AC", "GT"], [0, 1]), path)
                assert open_source(path).load().batch[1] == b"GT"
            else:
                with pytest.raises(DotaddError, match=r"ends in \.arrow or \.parquet"):
                    convert(open_source(["AC", "GT"], [0, 1]), path)
                assert not path.exists()


def test_predictions_are_written_under_the_endings_that_are_read():
    told = set(predictions.FORMATS.values())
    assert told == {name for name, format in FORMATS.items() if format.predictions}
    for ending, name in predictions.FORMATS.items():
        assert ending in ("", ".txt", *FORMATS[name].endings)


def test_the_table_of_the_documents_is_the_table():
    for format in FORMATS.values():
        endings = " ".join(format.endings)
        assert f"| `{format.name}` | {format.title} | {format.about} | {endings} |" in PAGE
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\|[^|]+\| \.[^|]+\|$", PAGE, re.MULTILINE)
    assert rows == list(FORMATS)


@pytest.mark.parametrize("text", [train.__doc__, compare.__doc__, PAGE], ids=["train", "compare", "page"])
def test_documents_name_every_format(text):
    for format in FORMATS.values():
        assert format.title.lower() in " ".join(text.lower().split())


def test_complaints_name_every_format(tmp_path):
    (tmp_path / "x").write_text("what is this\n")
    with pytest.raises(DotaddError) as unknown:
        open_source(tmp_path / "x")
    with pytest.raises(DotaddError) as wrong:
        open_source(tmp_path / "x", format="excel")
    for name in FORMATS:
        for complaint in (unknown, wrong):
            assert re.search(rf"\b{name}\b", str(complaint.value))
