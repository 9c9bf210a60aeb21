"""Genomes: windows around candidate sites, scans of whole chromosomes, and what matters where."""
