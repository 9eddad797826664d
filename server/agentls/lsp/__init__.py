"""The language server: LSP outside, the agent inside."""
