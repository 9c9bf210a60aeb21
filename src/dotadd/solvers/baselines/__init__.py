"""Solvers that others are compared with."""
