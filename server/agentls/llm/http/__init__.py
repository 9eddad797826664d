"""The way to a provider: addresses, keys, connections, and what failures mean."""
