"""Pictures of numbers as SVG that needs nothing but itself. They know no model: arrays in, Picture out."""
