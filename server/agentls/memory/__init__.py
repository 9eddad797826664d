"""Which part of a history is sent to a model."""
