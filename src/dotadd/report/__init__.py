"""Pictures of what a model learned; they need the extra `plots`."""
