"""Machine code that was installed is used where it fits and lies beside our own code, and else as if not there."""

import base64
import csv
import hashlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import dotadd
from dotadd import _jit
from dotadd._util.compiled_code import LEVELS, InstalledCode

ROOT = Path(__file__).parents[2]
LEVEL = "x86-64-v3" if platform.machine() in ("x86_64", "AMD64") else "generic"
LOSS = (
    "from dotadd.core.losses import Loss, total_loss; import numpy as np; "
    "print(total_loss(Loss.HINGE, np.zeros(2), np.ones(2)))"
)
pytestmark = pytest.mark.skipif(
    _jit.JIT_DISABLED or _jit.keeping.config.CPU_NAME is not None or _jit.keeping.config.BOUNDSCHECK,
    reason="other machine code is asked for",
)


def run(folder, **environment):
    done = subprocess.run(
        [sys.executable, "-c", LOSS],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "2.0\n"
    return done.stderr


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """One kernel for all processors of the level."""
    folder = tmp_path_factory.mktemp("cache")
    run(folder, DOTADD_CACHE_DIR=str(folder), NUMBA_CPU_NAME=LEVEL, NUMBA_CPU_FEATURES="")
    return {path.name: path.read_bytes() for path in (folder / "kernels").glob("core.losses.total_loss-*")}


@pytest.fixture(scope="module")
def wheel(code, tmp_path_factory):
    spec = importlib.util.spec_from_file_location("release_kernels", ROOT / "release/kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.wheel(code, LEVEL, tmp_path_factory.mktemp("dist"))


@pytest.fixture
def site(tmp_path):
    """A folder that dotadd is imported from, with nothing beside it."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site/dotadd").symlink_to(Path(dotadd.__file__).parent)
    return tmp_path / "site"


def path_of(*folders):
    return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])


def test_nothing_is_compiled_for_what_was_installed(wheel, site, tmp_path):
    paths = {"PYTHONPATH": path_of(site), "DOTADD_CACHE_DIR": str(tmp_path / "cache")}
    assert "compiling" in run(tmp_path, PYTHONPATH=path_of(site), DOTADD_CACHE_DIR=str(tmp_path / "other"))
    zipfile.ZipFile(wheel).extractall(site)
    assert run(tmp_path, **paths) == ""
    assert list((tmp_path / "cache/kernels").glob("core*")) == []
    (damaged,) = (site / "dotadd_kernels/code").iterdir()
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    assert "compiling" in run(tmp_path, **paths)
    assert len(list((tmp_path / "cache/kernels").glob("core*"))) == 1


def test_a_folder_of_that_name_elsewhere_on_the_path_is_not_read(wheel, site, tmp_path):
    """The current folder and others on Python's path may be anybody's."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "theirs")
    paths = path_of(tmp_path / "theirs", site)
    assert "compiling" in run(tmp_path / "theirs", PYTHONPATH=paths, DOTADD_CACHE_DIR=str(tmp_path / "cache"))


def test_only_a_processor_with_all_that_a_level_asks_for_runs_its_code():
    for level, words in LEVELS.items():
        code = InstalledCode(Path(), {"level": level})
        assert code.runs_on([*words.split(), "more"])
        assert not any(code.runs_on(set(words.split()) - {word}) for word in words.split())
    assert not InstalledCode(Path(), {"level": "x86-64-v9"}).runs_on(" ".join(LEVELS.values()).split())


def test_the_wheel_tells_what_is_in_it_and_what_it_is_for(code, wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = (name for name in names if name.endswith("/RECORD"))
        rows = {name: (digest, size) for name, digest, size in csv.reader(archive.read(record).decode().splitlines())}
        assert set(rows) == set(names)
        for name in set(names) - {record}:
            content = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert rows[name] == (f"sha256={digest}", str(len(content)))
        assert {name.split("/")[2] for name in names if name.startswith("dotadd_kernels/code/")} == set(code)
        made = json.loads(archive.read("dotadd_kernels/made.json"))
        metadata = archive.read(record.replace("RECORD", "METADATA")).decode()
    assert made["level"] == LEVEL
    assert f"Requires-Dist: dotadd=={dotadd.__version__}\n" in metadata
    assert f"Requires-Dist: numba=={made['numba']}\n" in metadata
