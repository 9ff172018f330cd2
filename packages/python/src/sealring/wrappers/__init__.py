"""Key wrappers: one file per provider."""
