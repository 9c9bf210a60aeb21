"""Models: what training leaves, its file, and how well it does on new data."""
