"""The model that runs on this machine: weights, the child process, calls held to a schema."""
