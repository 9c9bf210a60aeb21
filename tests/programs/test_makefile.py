"""What the Makefile lists of the tests is there: areas leave no folder out, and checked tests exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()


def test_every_folder_of_tests_belongs_to_one_area():
    listed = [name for names in re.findall(r"^TESTS_\w+ := (.*)$", MAKEFILE, re.MULTILINE) for name in names.split()]
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert sorted(listed) == sorted(folders)
    areas = re.search(r"^AREAS := (.*)$", MAKEFILE, re.MULTILINE)[1].split()
    assert sorted(areas) == sorted(re.findall(r"^TESTS_(\w+) :=", MAKEFILE, re.MULTILINE))


def test_every_checked_test_is_there():
    names = re.search(r"^CHECKED := ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)[1].replace("\\\n", " ").split()
    assert len(names) > 30
    assert [name for name in names if not list((ROOT / "tests").glob(f"*/test_{name}.py"))] == []
