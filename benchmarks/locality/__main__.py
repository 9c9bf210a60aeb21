"""Print the tables."""

from __future__ import annotations

import argparse

from benchmarks import locality

parser = argparse.ArgumentParser(description=locality.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--tiny", action="store_true", help="a few simulated windows, to see that it runs")
parser.add_argument("--rows", type=int, help="windows to train on at the end; the other parts take some of them")
parser.add_argument("--repeat", type=int, help="runs of which the best counts")
arguments = parser.parse_args()
print(locality.report(tiny=arguments.tiny, rows=arguments.rows, repeat=arguments.repeat))
