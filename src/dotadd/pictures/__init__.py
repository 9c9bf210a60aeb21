"""Pictures of numbers as SVG that needs nothing but itself, a file each. They know no model: arrays in, Picture out."""
