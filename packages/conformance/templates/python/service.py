"""The calls to implement."""

from typing import NamedTuple


class Encrypted(NamedTuple):
    """What the service made of a data key."""

    ciphertext: bytes
    version: str
    """The exact version of the KMS key that was used."""


def encrypt(name: str, data_key: bytes, context: bytes) -> Encrypted:
    """Encrypts a data key with the KMS key `name`, and authenticates `context` with it."""
    raise NotImplementedError("implement encrypt")


def decrypt(name: str, encrypted: Encrypted, context: bytes) -> bytes:
    """Decrypts with that version of the KMS key, under the same context."""
    raise NotImplementedError("implement decrypt")


def kind_of(error: Exception) -> str:
    """What an error of the service means: "corrupt" where it says that the ciphertext or the context
    is wrong. Whatever you do not recognise is an outage: the unknown must not end a key's life."""
    return "unavailable"
