"""The same training on many machines: parts of the data stay where they are, and talk to a driver in rounds."""

METHODS = ("cocoa", "average")
"""The solvers for data in parts, by name; `cocoa.py` and `average.py` tell what they do."""
