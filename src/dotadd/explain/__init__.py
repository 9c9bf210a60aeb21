"""Explanations: what the features, letters and columns of a row add to its score, and how that is shown."""
