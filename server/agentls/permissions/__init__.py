"""May this call run? Pure decisions over facts."""
