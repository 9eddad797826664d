"""Files, search and commands inside the workspace's roots."""
