"""Tools for models that call them in their text, and calls recovered from text."""
