"""`dotadd completion`: the shell itself is asked what it would complete."""

import shutil
import subprocess
import sys

import pytest

from dotadd.cli import COMMANDS, app, run


@pytest.fixture
def script(capsys, tmp_path):
    def make(shell):
        assert run(["completion", shell]) == 0
        path = tmp_path / shell
        path.write_text(capsys.readouterr().out)
        return path

    return make


def completed(script, *words):
    """What bash offers for the last of these words."""
    code = f'source "$1"; COMP_WORDS=("${{@:2}}"); COMP_CWORD={len(words) - 1}; _dotadd; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", code, "bash", str(script), *words], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_values(script):
    bash = script("bash")
    assert completed(bash, "dotadd", "") >= {command.__name__ for command in COMMANDS}
    assert completed(bash, "dotadd", "ev") == {"evaluate"}
    for command in COMMANDS:
        options = {name for one in app[command.__name__].assemble_argument_collection() for name in one.names}
        wanted = {name for name in options if name.startswith("--")}
        assert completed(bash, "dotadd", command.__name__, "--") >= wanted
    assert completed(bash, "dotadd", "train", "--loss", "hi") == {"hinge"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_names_of_files_where_nothing_else_fits(script):
    code = 'source "$1"; complete -p dotadd'
    told = subprocess.run(["bash", "-c", code, "bash", str(script("bash"))], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["complete", "-o", "default", "-F", "_dotadd", "dotadd"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_it(script, shell):
    path = script(shell)
    assert all(command.__name__ in path.read_text() for command in COMMANDS)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here to ask")
    subprocess.run([shell, "-n", str(path)], check=True)


def test_it_imports_nothing_heavy():
    code = "import sys; from dotadd.cli import run; run(['completion', 'bash']); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
