"""One tool a file; files, shell and search are reached through ports."""
