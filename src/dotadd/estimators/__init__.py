"""scikit-learn's face of the library."""
