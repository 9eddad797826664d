"""A user's own function as a model."""
