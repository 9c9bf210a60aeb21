"""`dotadd doctor` tells the truth about what is installed, and works where what it tells of is broken."""

import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from dotadd import errors
from dotadd.cli import run

doctor = sys.modules["dotadd.cli.doctor"]  # dotadd.cli has the command by this name
ROOT = Path(__file__).parents[2]


@pytest.fixture
def told(capsys):
    def tell(*options):
        assert run(["doctor", *options]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return tell


def test_it_tells_versions_cores_memory_and_the_cache(told, tmp_path, monkeypatch):
    monkeypatch.setenv("DOTADD_CACHE_DIR", str(tmp_path))
    (tmp_path / "kernels").mkdir(mode=0o700)
    (tmp_path / "kernels" / "some").write_bytes(bytes(12_345))
    (tmp_path / "0123456789abcdef-checked").mkdir()
    found = json.loads(told("--json"))
    assert found["dotadd"] == version("dotadd")
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["packages"] == {name: version(name) for name in doctor.PACKAGES}
    assert found["cores"]["usable"] == len(os.sched_getaffinity(0))
    assert found["memory"]["free"] > 0
    assert (found["cache"]["files"], found["cache"]["bytes"]) == (1, 12_345)
    assert found["cache"]["folders_of_earlier_versions"] == [str(tmp_path / "0123456789abcdef-checked")]
    assert found["environment"]["DOTADD_CACHE_DIR"] == str(tmp_path)
    shown = told()
    assert all(name in shown and version(name) in shown for name in doctor.PACKAGES)
    assert "12 kB" in shown


def test_a_missing_part_is_told_with_the_command_that_installs_it(told, monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda module: None)
    missing = json.loads(told("--json"))["optional"]
    assert not any(one["installed"] for one in missing.values())
    shown = told()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for module, extra in errors.EXTRAS.items():
        package = {"PIL.Image": "pillow", "dotadd_kernels": "dotadd-kernels"}.get(module, module)
        assert any(line.startswith(package) for line in extras[extra])
        assert f"pip install 'dotadd[{extra}]'" in shown


def test_a_package_that_is_needed_and_not_there_is_told_and_is_exit_code_1(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "PACKAGES", (*doctor.PACKAGES, "no-such-package"))
    assert run(["doctor"]) == 1
    assert "no-such-package  MISSING" in capsys.readouterr().out


def test_all_that_training_needs_is_asked_for():
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {line.partition(">=")[0] for line in needed} <= set(doctor.PACKAGES)


def test_it_works_where_numba_and_numpy_cannot_be_imported(tmp_path):
    broken = tmp_path / "broken"
    for name in ("numba", "numpy", "scipy", "pyarrow", "sklearn"):
        (broken / name).mkdir(parents=True)
        (broken / name / "__init__.py").write_text("raise ImportError('broken')")
    path = os.pathsep.join([str(broken), *filter(None, [os.environ.get("PYTHONPATH")])])
    code = "import sys; from dotadd.cli import run; sys.exit(run(['doctor', '--json']))"
    environment = os.environ | {"PYTHONPATH": path, "DOTADD_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["packages"]["numba"] == version("numba")
