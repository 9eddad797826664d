"""agentls: a language server that is a coding agent."""

__version__ = "0.1.0"
