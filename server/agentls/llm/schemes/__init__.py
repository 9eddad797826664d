"""Wire formats: a request each, and where it is long, its history and reader beside it. No HTTP."""
