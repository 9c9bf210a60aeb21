"""Summaries for programs: one JSON object on standard output, while messages go to standard error as always."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated

from cyclopts import Parameter

TELLS = "The summary as one JSON object on standard output; messages are on standard error."
Json = Annotated[bool, Parameter(name="--json", negative="", show_default=False, help=TELLS)]


def write_json(record: Mapping[str, object]) -> None:
    """Show this object; numbers that are not finite become null."""
    from dotadd.model.file import jsonable

    sys.stdout.write(json.dumps(jsonable(record), indent=2, allow_nan=False) + "\n")
