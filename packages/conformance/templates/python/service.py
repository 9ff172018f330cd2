"""The calls to implement."""

from typing import NamedTuple


class Encrypted(NamedTuple):
    """A data key encrypted by the service."""

    ciphertext: bytes
    version: str
    """The exact version of the KMS key that was used."""


def encrypt(name: str, data_key: bytes, context: bytes) -> Encrypted:
    """Encrypts a data key with the KMS key `name` and authenticates `context`."""
    raise NotImplementedError("implement encrypt")


def decrypt(name: str, encrypted: Encrypted, context: bytes) -> bytes:
    """Decrypts with that version of the KMS key, under the same context."""
    raise NotImplementedError("implement decrypt")


def kind_of(error: Exception) -> str:
    """The kind of an error of the service: "corrupt" if it reports a wrong ciphertext or context.
    Treat unknown errors as an outage, so that they never disable a key."""
    return "unavailable"
