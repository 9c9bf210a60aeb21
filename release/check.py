"""Whether what would be published is in order: `make release-check`.

Version, CHANGELOG, CITATION and recipe agree; sdist and wheel are built, rendered as an index would, and have in them
what they should; the wheel is installed into a fresh environment of each Python that is found, does its first day's
work there (`smoke.py`), and its types are accepted by a user's mypy and, where it is installed, pyright. With
`--offline` nothing is fetched: the packages that dotadd needs are borrowed from the environment that runs this, for its
version of Python alone.

It signs and publishes nothing. What only an owner can decide is told at the end; `--final v1.2.3` refuses to leave it
open.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
USER = ROOT / "tests/programs/typed_user.py"
LARGEST = 3_000_000  # bytes of a distribution: sources have a fifth of it, and data of tests would have more
DOCUMENTS = {
    *(
        "PKG-INFO",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "SECURITY.md",
        ".gitignore",
    ),
    "release/smoke.py",  # the recipe runs it
}
ADDRESSES = {"source", "issues"}  # of [project.urls]: what an owner adds


class NotInOrderError(Exception):
    """What is wrong, in a line or with the output of a program."""


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NotInOrderError(otherwise)


def project(root: Path = ROOT) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def supported(root: Path = ROOT) -> list[str]:
    """The versions of Python that the package says it runs on."""
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in project(root)["classifiers"])
    return [match[1] for match in found if match]


def headings(root: Path = ROOT) -> list[str]:
    """Those of the CHANGELOG, newest first."""
    return re.findall(r"^## (.+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)


def agree(root: Path = ROOT) -> str:
    """One version, one licence and one list of what is needed, wherever they are told."""
    import yaml

    told = project(root)
    version, licence = told["version"], told["license"]
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    require(
        str(citation["version"]) == version, f"CITATION.cff has version {citation['version']}, the package {version}"
    )
    require(citation["license"] == licence, f"CITATION.cff has licence {citation['license']}, the package {licence}")
    newest = next(
        (re.split(r"[ \]]", line.lstrip("["))[0] for line in headings(root) if line[:1] in "[0123456789"), None
    )
    require(newest == version, f"CHANGELOG.md has {newest} as its newest version, the package {version}")
    recipe = (root / "recipe/meta.yaml").read_text()
    require(f'{{% set version = "{version}" %}}' in recipe, f"recipe/meta.yaml does not have version {version}")
    require(f"license: {licence}\n" in recipe, f"recipe/meta.yaml does not have licence {licence}")
    for line in told["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(.*)", line).groups()
        conda = "pyarrow-core" if name == "pyarrow" else name  # the part that we use
        require(f"- {conda} {bound}\n" in recipe, f"recipe/meta.yaml does not need {conda} {bound}")
    kernels = told["optional-dependencies"]["kernels"]
    require(kernels == [f"dotadd-kernels=={version}"], f"the extra kernels is {kernels}, and not of {version}")
    oldest = told["requires-python"].removeprefix(">=")
    require(
        oldest == supported(root)[0], f"requires-python begins with {oldest}, classifiers with {supported(root)[0]}"
    )
    return f"version {version} and licence {licence} in pyproject, CHANGELOG, CITATION and recipe"


def left_to_the_owner(root: Path = ROOT) -> list[str]:
    told, version = project(root), project(root)["version"]
    found = []
    if missing := ADDRESSES - {name.lower() for name in told.get("urls", {})}:
        found.append(f"[project.urls] of pyproject.toml has no {' and no '.join(sorted(missing))}")
    if headings(root)[0].strip("[]").lower() == "unreleased":
        found.append(f"CHANGELOG.md has lines under Unreleased: they belong to {version}, or to a higher version")
    dated = next((line for line in headings(root) if version in line), "")
    if not re.search(r"\d{4}-\d\d-\d\d", dated):
        found.append(f"CHANGELOG.md has no date for {version}")
    if not re.search(r"^date-released:", (root / "CITATION.cff").read_text(), re.MULTILINE):
        found.append("CITATION.cff has no date-released")
    return found


def run(*command: str | os.PathLike[str], cwd: Path = ROOT, **environment: str) -> str:
    """What it prints; if it fails, all of that is the complaint."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    out = subprocess.run(
        list(command), cwd=cwd, env=inherited | environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    require(out.returncode == 0, f"{' '.join(map(str, command))}\n{out.stdout}")
    return out.stdout


def build(dist: Path) -> None:
    """The wheel is built from the sdist, so that it is known to be whole."""
    for old in dist.glob("dotadd-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, ROOT)


def only(dist: Path, pattern: str) -> Path:
    found = sorted(dist.glob(pattern))
    require(len(found) == 1, f"{dist} has {len(found)} files {pattern}, and not one")
    return found[0]


def contents(wheel: Path, sdist: Path, root: Path = ROOT) -> str:
    """All of the package, and nothing but the package and the documents that go with it."""
    sources = {str(path.relative_to(root / "src")) for path in (root / "src/dotadd").rglob("*.py")} | {
        "dotadd/py.typed",
        "dotadd/_jit/walks.txt",
    }
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    require(inside == sources, f"{wheel.name}: missing or too much: {sorted(inside ^ sources)[:5]}")
    with tarfile.open(sdist) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    wanted = {f"src/{name}" for name in sources} | DOCUMENTS
    require(inside == wanted, f"{sdist.name}: missing or too much: {sorted(inside ^ wanted)[:5]}")
    for path in (wheel, sdist):
        require(path.stat().st_size <= LARGEST, f"{path.name} has {path.stat().st_size:,} bytes: what is in there?")
    return f"{len(sources)} files of the package in {wheel.name} and {sdist.name}, {wheel.stat().st_size:,} bytes"


def interpreter(version: str) -> str | None:
    """A Python of this version that runs and can make environments: this one, one of the path, or one of pyenv."""
    places = [Path(folder) / f"python{version}" for folder in os.environ.get("PATH", "").split(os.pathsep)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places += sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    for place in [Path(sys.executable), *places]:
        if place.is_file():
            look = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
            out = subprocess.run([place, "-c", look], capture_output=True, text=True)
            if out.returncode == 0 and out.stdout.strip() == version:
                return str(place)
    return None


def install(wheel: Path, python: str, where: Path, *, offline: bool) -> Path:
    """The Python of a fresh environment with this wheel in it."""
    run(python, "-m", "venv", where)
    fresh = where / "bin/python"
    pip = (fresh, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    if offline:
        run(*pip, "--no-index", "--no-deps", wheel)
        site = Path(run(fresh, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    else:
        run(*pip, wheel)
    return fresh


def accepted_by_type_checkers(fresh: Path) -> str:
    """A user's program against the types that were installed: those of the wheel, by its py.typed."""
    by = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(USER, folder)
        if (Path(sys.executable).parent / "mypy").exists():
            mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull)
            run(*mypy, "--python-executable", fresh, USER.name, cwd=Path(folder))
            by.append("mypy --strict")
        if pyright := shutil.which("pyright"):
            run(pyright, "--pythonpath", fresh, USER.name, cwd=Path(folder))
            by.append("pyright")
    return f"types accepted by {' and '.join(by)}" if by else "types not looked at: neither mypy nor pyright is here"


def first_day(wheel: Path, version: str, python: str, *, offline: bool) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        fresh = install(wheel, python, Path(folder) / "venv", offline=offline)
        empty = Path(folder) / "empty"
        empty.mkdir()
        done = [
            run(fresh, ROOT / "release/smoke.py", cwd=empty, DOTADD_CACHE_DIR=str(Path(folder) / "cache")).splitlines()[
                -1
            ]
        ]
        if version == "{}.{}".format(*sys.version_info):
            done.append(accepted_by_type_checkers(fresh))
        return done


def check(dist: Path | None, pythons: Sequence[str] | None, *, offline: bool, final: str | None) -> None:
    if dist is None:
        dist = ROOT / "dist"
        say(agree())
        build(dist)
        say(f"built in {dist.name}/")
        run(sys.executable, "-m", "twine", "check", "--strict", *dist.glob("dotadd-*"))
        say("twine: README and metadata render")
    wheel, sdist = only(dist.resolve(), "dotadd-*.whl"), only(dist.resolve(), "dotadd-*.tar.gz")
    say(contents(wheel, sdist))
    for version in supported() if pythons is None else pythons:
        python = interpreter(version)
        require(python is not None or pythons is None, f"Python {version} is not here")
        if python is None:
            print(f"-    Python {version} is not here")
        elif offline and version != "{}.{}".format(*sys.version_info):
            print(f"-    Python {version}: offline, there is nothing to borrow from")
        else:
            for line in first_day(wheel, version, python, offline=offline):
                say(line)
    if final is not None:
        require(final == f"v{project()['version']}", f"the tag {final} is not of version {project()['version']}")
        require(not left_to_the_owner(), "; ".join(left_to_the_owner()))
    print(
        "\n".join(["for the owner: sign and publish what is in dist/", *(f"  {line}" for line in left_to_the_owner())])
    )


def say(line: str) -> None:
    print(f"ok   {line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", type=Path, help="look at what lies in this folder, and build nothing")
    parser.add_argument("--pythons", nargs="*", help="versions that have to be here; by default those that are")
    parser.add_argument("--offline", action="store_true", help="fetch nothing")
    parser.add_argument("--final", metavar="TAG", help="refuse what is left to the owner, and a tag of another version")
    given = parser.parse_args()
    try:
        check(given.dist, given.pythons, offline=given.offline, final=given.final)
    except NotInOrderError as error:
        sys.exit(f"release-check: {error}")


if __name__ == "__main__":
    main()
