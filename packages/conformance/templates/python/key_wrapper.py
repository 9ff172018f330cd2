"""A key wrapper in Python, for the Sealring conformance kit.

    pip install sealring
    npx sealring-conformance key-wrapper --exec "python key_wrapper.py"
"""

import json

from sealring import KeyWrapperError, Supports, WrappedKey
from sealring_adapter import serve_key_wrapper
from service import Encrypted, decrypt, encrypt, kind_of

DATA_KEY_BYTES = 32


class MyKeyWrapper:
    """Wraps data keys with one KMS key of your service."""

    provider = "my-kms"
    supports = Supports(context=True, authenticated=True, key_versions=True)

    def __init__(self, name: str) -> None:
        self.key_id = name

    def owns(self, wrapped: WrappedKey) -> bool:
        return wrapped.provider == self.provider and wrapped.key_id.startswith(f"{self.key_id}#")

    def wrap(self, data_key: bytes, context: dict, *, on_service_date=None) -> WrappedKey:
        if len(data_key) != DATA_KEY_BYTES or len(set(data_key)) == 1:
            raise ValueError("a data key has 32 bytes, which are not all the same")
        made = self._ask("wrap", encrypt, bytes(data_key), context)
        return WrappedKey(self.provider, f"{self.key_id}#{made.version}", made.ciphertext)

    def unwrap(self, wrapped: WrappedKey, context: dict, *, on_service_date=None) -> bytearray:
        # Checked before any call, since the ring document must not choose the KMS key.
        if not self.owns(wrapped):
            raise self._error("corrupt", "unwrap")
        version = wrapped.key_id.removeprefix(f"{self.key_id}#")
        data_key = self._ask("unwrap", decrypt, Encrypted(wrapped.wrapped, version), context)
        if len(data_key) != DATA_KEY_BYTES:
            raise self._error("corrupt", "unwrap")
        return bytearray(data_key)

    def _ask(self, operation, call, given, context):
        # One text for each context, independent of the order of its members.
        text = json.dumps(sorted(context.items())).encode()
        try:
            return call(self.key_id, given, text)
        except Exception as error:
            # Drops the error of the service, which may contain the data key.
            raise self._error(kind_of(error), operation) from None

    def _error(self, kind: str, operation: str) -> KeyWrapperError:
        return KeyWrapperError(kind, self.provider, operation=operation)


if __name__ == "__main__":
    names = {"self": "key-a", "other": "key-b"}
    # For a service on the network, delete `remote` and create a key wrapper on key-a with the
    # address of a closed port for the role "unreachable". With `disable`, `enable`, `deny`,
    # `allow` and `rotate`, the kit also changes key-a.
    serve_key_wrapper(lambda role: MyKeyWrapper(names[role]), supports={"remote": False})
