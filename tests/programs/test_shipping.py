"""What is published with the package is true and fits together; `make release-check` tries what takes longer."""

import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import dotadd
from dotadd.errors import DotaddError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "release"))

import check  # noqa: E402
import install  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAPERS = [  # title, families of its authors, year where its front page or our pages have one
    ("COFFIN: A Computational Framework for Linear SVMs", ["Sonnenburg", "Franc"], 2009),
    ("Linear Support Vector Machines via Dual Cached Loops", ["Matsushima", "Vishwanathan", "Smola"], 2012),
    ("SVM Optimization for Lattice Kernels", ["Allauzen", "Cortes", "Mohri"], None),
    (
        "Double Chunking for Solving SVMs for Very Large Datasets",
        ["Pérez-Cruz", "Figueiras-Vidal", "Artés-Rodríguez"],
        2004,
    ),
    ("Large Scale Learning and Optimization (using Support Vector Machines)", ["Sonnenburg", "Müller"], 2008),
]


@pytest.fixture(scope="module")
def yaml():
    return pytest.importorskip("yaml")


def workflow(yaml, name):
    found = yaml.safe_load((ROOT / ".github/workflows" / name).read_text())
    found["on"] = found.pop(True)  # what YAML makes of "on"
    return found


# Types


def test_users_programs_pass_mypy_strict(tmp_path):
    """A program that was written with types, and those of README and pages, as they stand there."""
    pytest.importorskip("mypy")
    shutil.copy(check.USER, tmp_path)
    texts = [path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))]
    pages = [code for text in texts for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]
    assert len(pages) > 20
    for number, code in enumerate(pages):
        (tmp_path / f"page_{number}.py").write_text(code)
    # Pages are written to be read: they use a threshold that they have set, without asking whether there is one, and
    # define a map without types; and others have none at all (scikit-learn).
    names = ",".join(f"page_{number}" for number in range(len(pages)))
    loose = "strict_optional = False\ndisallow_untyped_defs = False\ndisallow_untyped_calls = False\n"
    untyped = "[mypy-sklearn.*,distributed.*]\nignore_missing_imports = True\n"
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = True\n[mypy-{names}]\n{loose}{untyped}")
    out = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, *sorted(path.name for path in tmp_path.glob("*.py"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(dotadd.__file__).parents[1])},  # as what is installed is seen
    )
    assert out.returncode == 0, out.stdout + out.stderr


def test_type_checkers_see_every_public_name():
    """What is imported when it is used stands beside, for type checkers, as `X as X`; and nothing else does."""
    tree = ast.parse(Path(dotadd.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname for node in block.body for alias in node.names if alias.asname == alias.name}
    assert seen == set(dotadd.__all__)
    assert (Path(dotadd.__file__).parent / "py.typed").is_file()


# Metadata


def test_versions_and_licences_agree(yaml):
    assert PROJECT["project"]["version"] in check.agree()


def tree_of(tmp_path, **changed):
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "recipe/meta.yaml"):
        text = (ROOT / name).read_text()
        for before, after in changed.get(Path(name).stem, {}).items():
            assert before in text
            text = text.replace(before, after)
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


VERSION = PROJECT["project"]["version"]


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"pyproject": {f'version = "{VERSION}"': 'version = "99.1"'}}, "99.1"),
        ({"CITATION": {f"version: {VERSION}": "version: 98.0"}}, "CITATION"),
        ({"CITATION": {"license: BSD-3-Clause": "license: MIT"}}, "MIT"),
        ({"CHANGELOG": {f"## {VERSION}": "## 97.0"}}, "CHANGELOG"),
        ({"meta": {f'version = "{VERSION}"': 'version = "96.0"'}}, "recipe"),
        ({"meta": {"- numba >=": "- numba >0."}}, "numba"),
        ({"pyproject": {'requires-python = ">=3.11"': 'requires-python = ">=3.12"'}}, "3.12"),
    ],
)
def test_disagreement_is_told(yaml, changed, word, tmp_path):
    with pytest.raises(check.NotInOrderError, match=re.escape(word)):
        check.agree(tree_of(tmp_path, **changed))


def test_nothing_is_left_to_the_owner_once_they_have_filled_it_in(tmp_path):
    assert check.left_to_the_owner(tree_of(tmp_path))
    heading = next(line for line in check.headings() if VERSION in line)
    filled = {
        "pyproject": {"[project.urls]": '[project.urls]\nSource = "https://a.b"\nIssues = "https://a.b"'},
        "CHANGELOG": {"## Unreleased": "## 99.0 - 2030-01-01", f"## {heading}": f"## {VERSION} - 2030-01-01"},
        "CITATION": {"type: software": "type: software\ndate-released: 2030-01-01"},
    }
    assert check.left_to_the_owner(tree_of(tmp_path, **filled)) == []


def test_recipe_builds_the_same_package(yaml):
    text = re.sub(r"^{% .* %}$|^#.*$", "", (ROOT / "recipe/meta.yaml").read_text(), flags=re.MULTILINE)
    recipe = yaml.safe_load(re.sub(r"{{ (\w+) }}", r"\1", text))
    ((name, target),) = PROJECT["project"]["scripts"].items()
    assert recipe["build"]["entry_points"] == [f"{name} = {target}"]
    assert recipe["build"]["noarch"] == "python"
    assert set(recipe["requirements"]["host"]) >= set(PROJECT["build-system"]["requires"])
    assert len(recipe["requirements"]["run"]) == 1 + len(PROJECT["project"]["dependencies"])
    assert all((ROOT / path).is_file() for path in recipe["test"]["source_files"])


def test_metadata_says_what_the_package_is():
    told = PROJECT["project"]
    assert {"Typing :: Typed", *(f"Programming Language :: Python :: {v}" for v in check.supported())} <= set(
        told["classifiers"]
    )
    assert not [line for line in told["classifiers"] if line.startswith("License ::")]  # SPDX stands in its place
    assert all(address.startswith("https://") for address in told["urls"].values())
    assert len(set(told["keywords"])) == len(told["keywords"])
    known = pytest.importorskip("trove_classifiers").classifiers
    assert set(told["classifiers"]) <= known


def test_citation_has_the_five_papers(yaml):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()  # all that the format requires
    found = [
        (paper["title"], [author["family-names"] for author in paper["authors"]], paper.get("year"))
        for paper in citation["references"]
    ]
    assert found == PAPERS
    assert version("dotadd") == str(citation["version"])


# What is inside


def archives(folder, extra_in_wheel=(), left_out=()):
    sources = [path.relative_to(ROOT / "src") for path in (ROOT / "src/dotadd").rglob("*.py")]
    names = {str(name) for name in [*sources, "dotadd/py.typed", "dotadd/_jit/walks.txt"]} - set(left_out)
    wheel, sdist = folder / "dotadd-1-py3-none-any.whl", folder / "dotadd-1.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in [*names, *extra_in_wheel, "dotadd-1.dist-info/METADATA"]:
            archive.writestr(name, "")
    with tarfile.open(sdist, "w:gz") as archive:
        for name in [*(f"src/{name}" for name in names), *check.DOCUMENTS]:
            archive.addfile(tarfile.TarInfo(f"dotadd-1/{name}"), io.BytesIO())
    return wheel, sdist


def test_contents_that_are_right_are_accepted(tmp_path):
    check.contents(*archives(tmp_path))


@pytest.mark.parametrize(
    "wrong",
    [
        {"extra_in_wheel": ["tests/naive.py"]},
        {"left_out": ["dotadd/py.typed"]},
        {"left_out": ["dotadd/_jit/walks.txt"]},
        {"left_out": ["dotadd/_jit/__init__.py"]},
    ],
)
def test_contents_that_are_wrong_are_told_by_name(wrong, tmp_path):
    ((name,),) = wrong.values()
    with pytest.raises(check.NotInOrderError, match=re.escape(name)):
        check.contents(*archives(tmp_path, **wrong))


@pytest.mark.skipif(not (find_spec("build") and find_spec("hatchling")), reason="needs build and hatchling")
def test_what_is_built_has_all_of_the_package_and_nothing_else(tmp_path):
    check.build(tmp_path)
    check.contents(check.only(tmp_path, "*.whl"), check.only(tmp_path, "*.tar.gz"))


def test_smoke_test_calls_commands_that_exist():
    tree = ast.parse((ROOT / "release/smoke.py").read_text())
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "command"
    ]
    from dotadd import cli

    used = {call.args[0].value for call in calls if call.args and isinstance(call.args[0], ast.Constant)}
    assert used - {"--version"} <= {command.__name__ for command in cli.COMMANDS}
    assert used >= {"--version", "train", "predict"}


# Workflows and forms


def test_workflows_call_what_the_makefile_has(yaml):
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    options = set(re.findall(r"\$\((?:origin )?([A-Z]+)\)", (ROOT / "Makefile").read_text()))
    called = []
    for name in ("ci.yml", "release.yml"):
        for job in workflow(yaml, name)["jobs"].values():
            for line in (step["run"] for step in job["steps"] if "run" in step):
                if line.startswith("make "):
                    target, *given = line.replace("${{ ", "").split()[1:]
                    called.append(target)
                    assert target in targets
                    assert {word.split("=")[0] for word in given if "=" in word} <= options, line
                else:
                    program = line.split()[1]
                    assert (ROOT / program).is_file()
                    flags = set(re.findall(r"--\w+", line))
                    assert flags <= set(re.findall(r'add_argument\("(--\w+)"', (ROOT / program).read_text()))
    assert {"lint", "test", "release-check"} <= set(called)


def test_workflows_try_every_python_that_is_promised(yaml):
    matrices = [
        workflow(yaml, "ci.yml")["jobs"]["test"]["strategy"]["matrix"],
        workflow(yaml, "release.yml")["jobs"]["install"]["strategy"]["matrix"],
    ]
    for matrix in matrices:
        assert matrix["python"] == check.supported()


def test_workflows_hold_no_secret_and_may_only_read(yaml):
    for name in ("ci.yml", "release.yml"):
        assert workflow(yaml, name)["permissions"] == {"contents": "read"}
        assert "secrets." not in (ROOT / ".github/workflows" / name).read_text()


@pytest.mark.parametrize("name", ["bug", "wrong_answer", "feature"])
def test_issue_forms_are_as_github_reads_them(yaml, name):
    form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text())
    assert form["name"]
    assert form["description"]
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(set(ids)) == len(ids) > 0
    for part in form["body"]:
        assert part["type"] in ("markdown", "textarea", "input", "dropdown", "checkboxes")
        assert part["attributes"]["value" if part["type"] == "markdown" else "label"]
        assert part["type"] != "dropdown" or all(isinstance(option, str) for option in part["attributes"]["options"])


# Security


def test_options_that_security_names_are_there(capsys):
    from dotadd import cli

    text = (ROOT / "SECURITY.md").read_text()
    ours = re.sub(r"^dask .*$", "", text, flags=re.MULTILINE)
    named = set(re.findall(r"--[a-z][\w-]+", ours)) - {"--version"}
    assert {"--tls-ca", "--tls-cert", "--tls-key", "--scheduler", "--workers"} <= named
    assert cli.run(["train", "--help"]) == 0
    assert named <= set(re.findall(r"--[a-z][\w-]+", capsys.readouterr().out))
    for variable in re.findall(r"DOTADD_\w+", text):
        assert variable in (ROOT / "src/dotadd/_jit/keeping.py").read_text()


def test_options_of_dask_that_security_names_are_there():
    """Read, and not imported, which takes a second."""
    if (spec := find_spec("distributed")) is None:
        pytest.skip("needs distributed")
    there, text = Path(spec.origin).parent, (ROOT / "SECURITY.md").read_text()
    settings = (there / "distributed.yaml").read_text()
    for indent, name in enumerate(re.search(r"`(distributed\.comm\.tls)`", text)[1].split(".")):
        assert re.search(rf"^{'  ' * indent}{name}:", settings, re.MULTILINE)
    named = set(re.findall(r"(\w+)=(?:\.\.\.|True)", text))
    slots = re.search(r"__slots__ = \((.*?)\)", (there / "security.py").read_text(), re.DOTALL)[1]
    assert named <= set(re.findall(r'"(\w+)"', slots))
    assert len(named) == 4
    for program in ("scheduler", "worker"):
        flags = set(re.findall(r"--[\w-]+", re.search(rf"^dask {program} (.*)$", text, re.MULTILINE)[1]))
        source = (there / f"cli/dask_{program}.py").read_text()
        assert [flag for flag in flags if f'"{flag}"' not in source] == []


def test_nothing_that_could_run_what_a_file_says_is_used():
    """pickle is for compiled code in a private folder, and for errors between workers that trust each other."""
    runs = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml"}
    found, called = {}, set()
    for path in (ROOT / "src/dotadd").rglob("*.py"):
        text = path.read_text()
        if not any(word in text for word in (*runs, "eval", "exec")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                found.setdefault(str(path.relative_to(ROOT / "src/dotadd")), set()).update(
                    runs & {name.split(".")[0] for name in names}
                )
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
                called.add(str(path))
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert node.value.value is False
    assert {path: names for path, names in found.items() if names} == {
        "_jit/keeping.py": {"pickle"},
        "cluster/connection.py": {"pickle"},
    }
    assert not called


class Trap:
    """Unpickling it leaves a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_python_objects_in_arrays_are_refused_and_not_run(ending, tmp_path):
    sprung, path = tmp_path / "sprung", tmp_path / f"trap{ending}"
    rows = np.array([Trap(sprung), Trap(sprung)], dtype=object)
    (np.save if ending == ".npy" else np.savez)(path, rows)
    with pytest.raises(DotaddError):
        dotadd.LinearSVM().fit(str(path), [1, -1])
    assert not sprung.exists()


@pytest.mark.parametrize("phi", ["__import__('os').system('touch sprung')", "(lambda: Linear())()", "Linear.__class__"])
def test_expression_of_a_model_is_never_run(phi, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dotadd.LinearSVM("Linear()").fit([[0.0, 1.0], [1.0, 0.0]], [1, -1]).save("good.dotadd")
    content = Path("good.dotadd").read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    texts = header["__metadata__"]
    del texts["checksum"]  # files without one are read, too

    def write(phi):
        header["__metadata__"] = {name: text.replace("Linear(n_features=2)", phi) for name, text in texts.items()}
        told = json.dumps(header).encode()
        Path("other.dotadd").write_bytes(len(told).to_bytes(8, "little") + told + content[end:])

    write("Linear(n_features=2)")
    dotadd.load("other.dotadd")
    write(phi)
    assert phi.encode() in Path("other.dotadd").read_bytes()
    with pytest.raises(DotaddError):
        dotadd.load("other.dotadd")
    assert not Path("sprung").exists()


# make


def test_installing_is_not_silent_and_its_failure_is_told_in_full(capfd):
    script = (
        "print('Collecting numpy', flush=True); import time; time.sleep(0.4); print('why not'); raise SystemExit(3)"
    )
    before, install.EVERY, install.STEP = (install.EVERY, install.STEP), 0.0, 0.05
    try:
        assert install.told("a thing", [sys.executable, "-c", script]) == 3
        first, *rest = capfd.readouterr().out.splitlines()
        assert "a thing" in first
        assert any(re.search(r"\d s  Collecting numpy", line) for line in rest)
        assert "why not" in rest
        assert install.told("a thing", [sys.executable, "-c", "print('noise')"]) == 0
        out = capfd.readouterr().out
        assert "noise" not in out
        assert re.search(r"done in \d+ s", out)
    finally:
        install.EVERY, install.STEP = before
