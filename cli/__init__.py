"""The `gallocheck` command, thin: every command calls into fuzz, spec or native and prints."""
