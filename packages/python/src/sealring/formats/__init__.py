"""What tokens look like: pure functions of bytes and keys."""
