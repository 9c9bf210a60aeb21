"""The same training on many machines: parts of the data stay where they are, and talk to a driver in rounds."""
