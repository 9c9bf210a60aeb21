"""Linear solvers, one file an algorithm; `table.py` lists them."""
