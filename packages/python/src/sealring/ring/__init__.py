"""The ring: what a reader does with it. Nothing in here writes one."""
