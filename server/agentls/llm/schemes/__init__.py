"""One wire format a file; no HTTP in here."""
