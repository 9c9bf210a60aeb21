"""The site of the documentation hangs together: its pages, links, anchors and reference, without building it."""

import re
import sys
import unicodedata
from pathlib import Path

import pytest
import yaml

import dotadd
from dotadd import errors
from dotadd.cli import COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*DOCS.glob("**/*.md"), ROOT / "README.md"])
SETTINGS = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
sys.path.insert(0, str(DOCS))

import command_line_hook  # noqa: E402


def prose(text):
    return re.sub(r"`[^`\n]+`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def anchors(text):
    """Those that mkdocs makes of headings."""
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE):
        plain = unicodedata.normalize("NFKD", re.sub(r"[`*]", "", heading)).encode("ascii", "ignore").decode()
        yield re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def leaves(nav):
    for item in nav:
        for place in item.values():
            yield from [place] if isinstance(place, str) else leaves(place)


HOUSE = ["CONTRIBUTING.md", "docs/design.md", "docs/words.md", "docs/decisions.md"]
PACKAGE = ROOT / "src" / "dotadd"
FILE = r"`([\w/]+\.py)(?:: \w+)?`"


@pytest.mark.parametrize("page", HOUSE)
def test_files_that_the_pages_about_the_house_name_are_there(page):
    named = re.findall(FILE, (ROOT / page).read_text())
    assert len(named) > 5
    for name in named:
        assert (ROOT / name).exists() or (PACKAGE / name).exists(), name


@pytest.mark.parametrize("page", ["docs/design.md", "docs/words.md"])
def test_words_are_defined_in_the_files_that_the_pages_name(page):
    rows = re.findall(r"^\| (`[^|]*`) \|[^|]*\| (`[^|]*`) \|$", (ROOT / page).read_text(), re.MULTILINE)
    assert len(rows) > 20
    for words, places in rows:
        text = "\n".join((PACKAGE / name).read_text() for name in re.findall(FILE, places))
        for word in re.findall(r"`(\w+)`", words):
            assert re.search(rf"^(class|def) {word}\b", text, re.MULTILINE), (word, places)


def test_the_menu_has_every_page_once():
    pages = sorted(page.removeprefix("docs/") for page in PAGES if page.startswith("docs/"))
    assert sorted(leaves(SETTINGS["nav"])) == pages


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = prose((ROOT / page).read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", target):
            continue
        name, _, anchor = target.partition("#")
        path = ((ROOT / page).parent / name).resolve() if name else ROOT / page
        assert path.is_file(), f"{page}: {target}"
        if page != "README.md":  # which the site has not
            assert path.is_relative_to(DOCS), f"{page}: {target} is not part of the site"
        if anchor:
            assert anchor in list(anchors(path.read_text())), f"{page}: {target}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_a_page_has_one_title_and_says_at_once_what_it_is_about(page):
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    title, first = text.split("\n\n")[:2]
    assert title.startswith("# ")
    assert re.match(r"[A-Za-z`*\[]", first), first


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("SVM for text larger than memory", "docs/tutorials/larger_than_memory.md"),
        ("string kernel Python", "docs/tutorials/splice_sites.md"),
        ("gkm-SVM peaks", "docs/tutorials/peaks_and_variants.md"),
        ("SVM probabilities calibrated", "docs/howto/probabilities.md"),
        ("multi-label classification", "docs/howto/several_labels.md"),
        ("distributed SVM Dask", "docs/tutorials/cluster.md"),
    ],
)
def test_who_searches_finds_the_page(query, page):
    """No page has more of the words in its title and first sentences than the one that answers."""
    words = query.lower().split()

    def hits(name):
        beginning = " ".join((ROOT / name).read_text().split("\n\n")[:2]).lower()
        return sum(word in beginning for word in words)

    assert hits(page) == len(words)
    assert hits(page) == max(hits(name) for name in PAGES)


def test_the_reference_has_every_public_name():
    text = "".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    told = re.findall(r"^::: dotadd\.(\w+)$", text, re.MULTILINE)
    names = {name for name in dotadd.__all__ if name != "__version__" and not hasattr(errors, name)}
    assert sorted(told) == sorted({*names, "automata", "errors"})


def test_the_page_of_the_command_line_tells_of_every_command():
    page = (DOCS / "reference" / "command_line.md").read_text()
    made = command_line_hook.on_page_markdown(page)
    assert command_line_hook.PLACE in page
    assert re.findall(r"^## dotadd (\w+)$", made, re.MULTILINE) == [command.__name__ for command in COMMANDS]
    for option in ("--features", "--threshold", "--model-donor", "--poim", "--solvers"):
        assert option in made
    assert command_line_hook.on_page_markdown("another page") == "another page"


def test_figures_of_the_readme_stand_in_the_pages_of_measurements():
    pages = "".join((DOCS / name).read_text() for name in ("benchmarks.md", "results.md"))
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| .*`benchmarks\..*$", readme, re.MULTILINE)
    assert len(rows) > 5
    for row in rows:
        _, _, ours, peer, ratio, command, _ = row.split("|")
        figures = re.findall(r"\d[\d,]*\.\d+", ours + peer + ratio)
        assert len(figures) >= 3
        for figure in figures:
            assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d])", pages), figure
        assert f"python -m {command.strip().strip('`')}" in pages, command


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90
