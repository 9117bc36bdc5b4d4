"""The `say` command."""
