"""The functions to implement."""


def seal(key: bytes, payload: bytes) -> bytes:
    """Encrypts and authenticates a payload. The result is later passed to `unseal`."""
    raise NotImplementedError("implement seal")


def unseal(key: bytes, sealed: bytes) -> bytes | None:
    """Reverses `seal`; None for bytes that `seal` did not produce with this key."""
    raise NotImplementedError("implement unseal")
