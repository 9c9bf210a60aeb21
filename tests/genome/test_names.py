"""Names of chromosomes are matched with and without "chr"."""

import pytest

from dotadd.genome.sequences import match_names


@pytest.mark.parametrize(
    ("wanted", "present"),
    [
        ("chr1", "1"), ("1", "chr1"), ("chrX", "X"), ("Chr2", "2"), ("CHR2", "chr2"), ("chrM", "MT"), ("MT", "chrM"),
        ("M", "MT"), ("chrMT", "chrM"), ("scaffold_7", "scaffold_7"), ("chrUn_KI270302v1", "chrUn_KI270302v1"),
    ],
)  # fmt: skip
def test_names_of_one_chromosome_match(wanted, present):
    assert match_names([wanted], ["other", present]) == {wanted: present}


@pytest.mark.parametrize(("wanted", "present"), [("1", "11"), ("chr1", "chr10"), ("X", "Y"), ("chr", "1"), ("a", "A")])
def test_names_of_other_chromosomes_do_not(wanted, present):
    assert match_names([wanted], [present]) == {}


def test_the_exact_name_goes_before_one_that_is_alike():
    assert match_names(["1", "chr1", "Chr1"], ["chr1", "1"]) == {"1": "1", "chr1": "chr1", "Chr1": "chr1"}


def test_wanted_names_may_come_again_and_from_iterators():
    assert match_names(iter(["1", "1", "2"]), iter(["chr1"])) == {"1": "chr1"}
