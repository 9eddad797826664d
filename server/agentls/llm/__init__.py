"""Models: schemes turn requests into provider JSON and back, a transport carries them."""
