"""Shapes and seams every other package shares. A leaf: standard library and pydantic only."""
