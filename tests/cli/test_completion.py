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


def needs(shell):
    return pytest.param(shell, marks=pytest.mark.skipif(shutil.which(shell) is None, reason=f"needs {shell}"))


BASH = """
source "$1"
for line in "${@:2}"; do
    COMP_WORDS=($line)
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _dotadd
    echo "${COMPREPLY[@]}"
done
"""
FISH = """
source $argv[1]
for line in $argv[2..]
    complete -C $line | string replace -r "\\t.*" "" | string join " "
end
true
"""
# Completion of zsh lives in its line editor: one that runs in a terminal of its own is given the line and a TAB.
ZSH = """
zmodload zsh/zpty
for line in ${@:3}; do
    : > $1.found
    zpty inner zsh -f -i
    zpty -w inner "source ${(q)1} ${(q)2}"
    zpty -w -n inner $line$'\\t'
    while zpty -r inner told && [[ $told != *OVER* ]]; do :; done
    zpty -d inner
    print -r -- ${(f)"$(< $1.found)"}
done
"""
INSIDE = """
PROMPT= RPROMPT=
autoload -Uz compinit && compinit -u -D
source $1
found=${0:A}.found
compadd() {
    local -a hits
    [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]] || { builtin compadd -A hits "$@"; print -rl -- $hits >> $found }
    builtin compadd "$@"
}
over() { print OVER }
comppostfuncs=(over)
"""


def offered(shell, script, lines):
    """What the shell offers for the last word of each line."""
    start = {"bash": ["bash", "-c", BASH, "bash"], "fish": ["fish", "--no-config", "-c", FISH]}
    if shell == "zsh":
        inside = script.with_name("inside")
        inside.write_text(INSIDE)
        start["zsh"] = ["zsh", "-f", "-c", ZSH, "zsh", inside]
    command = [*start[shell], script, *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=script.parent, timeout=120)
    assert done.stderr == ""
    return [set(line.split()) for line in done.stdout.splitlines()]


SHELLS = [needs(shell) for shell in ("bash", "zsh", "fish")]


@pytest.mark.parametrize("shell", SHELLS)
def test_it_completes_commands_options_and_values(shell, script):
    names = [command.__name__ for command in COMMANDS]
    lines = ["dotadd ", "dotadd ev", "dotadd train --loss hi", *(f"dotadd {name} --" for name in names)]
    every, one, value, *options = offered(shell, script(shell), lines)
    assert every >= set(names)
    assert (one, value) == ({"evaluate"}, {"hinge"})
    for name, found in zip(names, options, strict=True):
        known = {option for one in app[name].assemble_argument_collection() for option in one.names}
        assert found >= {option for option in known if option.startswith("--")}


@pytest.mark.parametrize("shell", [needs("zsh"), needs("fish")])
def test_it_completes_names_of_files(shell, script):
    path = script(shell)
    path.with_name("some.csv").touch()
    assert offered(shell, path, ["dotadd train som", "dotadd predict some.c"]) == [{"some.csv"}] * 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_names_of_files_where_nothing_else_fits(script):
    code = 'source "$1"; complete -p dotadd'
    told = subprocess.run(["bash", "-c", code, "bash", str(script("bash"))], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["complete", "-o", "default", "-F", "_dotadd", "dotadd"]


def test_it_imports_nothing_heavy():
    code = "import sys; from dotadd.cli import run; run(['completion', 'bash']); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
