"""Fixtures that several folders of tests need."""

pytest_plugins = ["support.models"]
