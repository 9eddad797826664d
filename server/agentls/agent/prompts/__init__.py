"""System prompts, one Markdown file a kind of model, filled in with `str.format`."""
