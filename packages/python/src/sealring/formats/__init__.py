"""The formats of tokens: pure functions of bytes and keys."""
