"""The way to a provider: addresses, keys, connections, and when to ask again."""
