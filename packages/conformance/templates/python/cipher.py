"""The functions to implement."""


def seal(key: bytes, payload: bytes) -> bytes:
    """Encrypts and authenticates a payload. What it returns comes back to `unseal`."""
    raise NotImplementedError("implement seal")


def unseal(key: bytes, sealed: bytes) -> bytes | None:
    """Undoes `seal`; None for bytes that `seal` did not make with this key."""
    raise NotImplementedError("implement unseal")
