"""Raw examples in memory: batches, lattices, virtual examples and the transformations that make them."""
