"""GFF3 and GTF: the introns are what lies between the exons of each transcript, whatever the order of the lines."""

from __future__ import annotations

import gzip
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_genome import Transcript, gff3, gtf, introns, random_genome, random_transcripts

from dotadd.errors import DataError
from dotadd.genome.files import Annotation

EXON = "c\there\texon\t{}\t{}\t.\t{}\t.\t{}\n"


def read(path):
    """All introns of a file as the twin gives them."""
    annotation = Annotation(path)
    found = []
    for name in annotation.furthest:
        here = annotation.introns(name, 10**9)
        for first, last, minus in zip(here.first.tolist(), here.last.tolist(), here.minus.tolist(), strict=True):
            found.append((name, first, last, "-" if minus else "+"))
    return found


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_introns_lie_between_the_exons_of_each_transcript(tmp_path_factory, seed):
    rng = random.Random(seed)
    genome = random_genome(rng) | {"long": "A" * 300}
    transcripts = random_transcripts(rng, genome)
    expected = introns(transcripts)
    for text in (gff3(transcripts, rng), gtf(transcripts, rng)):
        path = tmp_path_factory.mktemp("a") / "a.gff"
        path.write_text(text)
        if not expected:
            with pytest.raises(DataError, match="has no introns"):
                read(path)
            continue
        found = read(path)
        assert len(found) == len(set(found))
        assert set(found) == expected


def one(tmp_path, text):
    path = tmp_path / "a.gff3"
    path.write_text(text, newline="")
    return read(path)


def test_an_exon_may_have_several_parents(tmp_path):
    text = (
        EXON.format(1, 5, "+", "Parent=a,b")
        + EXON.format(9, 12, "+", "Parent=a")
        + EXON.format(20, 22, "+", "Parent=b")
    )
    assert one(tmp_path, text) == [("c", 6, 8, "+"), ("c", 6, 19, "+")]


def test_exons_that_overlap_or_touch_have_nothing_between_them(tmp_path):
    exons = [(1, 10), (3, 5), (8, 12), (13, 14), (16, 20)]
    text = "".join(EXON.format(*exon, "-", "Parent=a") for exon in exons)
    assert one(tmp_path, text) == [("c", 15, 15, "-")]
    assert introns([Transcript("c", "-", tuple(exons))]) == {("c", 15, 15, "-")}


def test_one_transcript_on_two_strands_or_sequences_has_no_intron_between_them(tmp_path):
    text = (
        EXON.format(1, 5, "+", "Parent=a") + EXON.format(9, 12, "-", "Parent=a") + EXON.format(20, 25, "-", "Parent=a")
    )
    assert one(tmp_path, text + text.replace("c\t", "d\t", 1)) == [("c", 13, 19, "-")]


def test_comments_other_features_other_line_ends_and_sequences_at_the_end_are_passed_over(tmp_path):
    exons = EXON.format(1, 5, "+", "Parent=a") + EXON.format(9, 12, "+", "Parent=a")
    other = EXON.replace("exon", "CDS").format(1, 2, "+", "Parent=a") + EXON.format(7, 7, ".", "Parent=a")
    orphan = EXON.format(7, 7, "+", "ID=x")
    text = "##gff-version 3\n#a\tb\n\n" + other + orphan + exons
    for end in ("", "##FASTA\n>c\nACGT\n", ">c\nACGT\n"):
        for newline in ("\n", "\r\n"):
            assert one(tmp_path, (text + end).replace("\n", newline)) == [("c", 6, 8, "+")]


def test_names_of_sequences_are_unescaped_and_compressed_files_are_read(tmp_path):
    text = (EXON.format(1, 5, "+", "Parent=a") + EXON.format(9, 12, "+", "Parent=a")).replace("c\t", "c%201\t")
    path = tmp_path / "a.gff.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert read(path) == [("c 1", 6, 8, "+")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (EXON.format(9, 5, "+", "Parent=a"), ":1: the exon begins at 9, behind its end at 5"),
        (EXON.format(0, 5, "+", "Parent=a"), ":1: the exon begins at 0, and positions count from 1"),
        (EXON.format("x", 5, "+", "Parent=a"), ":1: start and end of an exon have to be whole numbers"),
        (EXON.format(1, 5, "*", "Parent=a"), r":1: the strand is '\*'"),
        ("#\nc 1 2 3\n", ":2: a line of GFF3 or GTF has 9 columns with tabs between them, and this one has 1"),
        (">c\nACGT\n", ":1: a line of GFF3 or GTF has 9 columns"),
        ("", "has no introns: no line is of type exon"),
        (EXON.format(1, 5, "+", "ID=a"), r"has no introns: 1 exons in 0 transcripts \(1 without Parent= or"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(DataError, match=rf"a\.gff3{message}" if message[0] == ":" else message):
        one(tmp_path, text)


def test_exons_beyond_the_end_of_their_sequence_are_refused(tmp_path):
    path = tmp_path / "a.gff3"
    path.write_text(EXON.format(1, 5, "+", "Parent=a") + EXON.format(9, 12, "+", "Parent=a"))
    assert len(Annotation(path).introns("c", 12)) == 1
    with pytest.raises(DataError, match=r"a\.gff3:2: the exon ends at 12, but sequence 'c' has 11 letters"):
        Annotation(path).introns("c", 11)
