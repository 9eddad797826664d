"""The loop: graph, nodes, turns, sessions. Sees core and its ports only."""
