"""Settings of the test run."""

import os

from hypothesis import settings

# The first example may compile, so none has a deadline; CI draws the same examples each time.
settings.register_profile("dotadd", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("dotadd")
