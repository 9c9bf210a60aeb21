"""Fuzzers: damaged files of every format that is read. A file is read well or refused in one line that names it.

    cd tests && python -m fuzz                        all formats, 2,000 cases each
    cd tests && python -m fuzz csv --cases 1000000    one of them, for longer
    cd tests && python -m fuzz csv --only 1234        one case again, with its traceback

A case depends on the format, the seed and its number alone. Each format runs in a process of its own, which notes the
case that it is at: so a signal, a hang or too much memory have a number, too.
"""
