"""Fixtures that several folders of tests need."""

import os

# Whatever the developer keeps in a keyring is none of the tests' business.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"

pytest_plugins = ["support.models", "support.peers", "support.proofs"]
