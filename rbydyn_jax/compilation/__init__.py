"""Compilation in the hands of the user: when it happens, and how another process is spared it."""
