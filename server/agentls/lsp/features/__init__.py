"""One group of methods a file."""
