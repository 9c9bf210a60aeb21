"""dotadd completion: what a shell needs to complete commands, options and names of files by TAB."""

from __future__ import annotations

import sys
from typing import Literal

# Where neither commands nor options fit, names of files do, as nearly all arguments are. In bash `default` is for that.
ZSH = """
_dotadd() {
  local before=$compstate[nmatches]
  _cyclopts_dotadd "$@"
  (( compstate[nmatches] > before )) || _files
}
compdef _dotadd dotadd
"""


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print what lets a shell complete commands and options by TAB.

    In bash and zsh, for this session, or from ~/.bashrc or ~/.zshrc for all:

        eval "$(dotadd completion bash)"
        eval "$(dotadd completion zsh)"

    In fish:

        dotadd completion fish > ~/.config/fish/completions/dotadd.fish

    Parameters
    ----------
    shell
        The shell.
    """
    from dotadd.cli import app

    script = app.generate_completion(shell=shell)
    if shell == "bash":
        script = script.replace("complete -F", "complete -o default -F")
    sys.stdout.write(script.rstrip("\n") + "\n" + (ZSH if shell == "zsh" else ""))
