"""The ring: what a process knows about it, and how it reads and writes it."""
