"""Wraps data keys with a key of Azure Key Vault or Managed HSM: wrapKey and unwrapKey."""

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from .. import base64url
from ..derivation import overwrite
from ..errors import KeyWrapperError, KeyWrapperErrorKind, KeyWrapperOperation
from ..failures import ConnectionFailure, connection_failure
from ..key_wrapper import OnServiceDate, Supports, WrappedKey
from ..options import number, one_of, sequence, with_method
from .service import (
    check_context,
    check_plaintext,
    kind_of_status,
    matches,
    name_of_key,
    names_of_keys,
    note_date,
    taken_data_key,
)

_OWNER = "AzureKeyVaultKeyWrapper"
_PROVIDER = "azure-key-vault"
# The length for RSA with 4096 bits, the longest that a vault supports.
_MAX_WRAPPED_BYTES = 512
# How long the current version of a key is remembered.
_CURRENT_VERSION_SECONDS = 300
# Neither algorithm takes a context, so the ring appends the hash of the context.
_LENGTHS = (32, 64)
_MAX_PUBLIC_KEYS = 16
_COORDINATE_BYTES = 32
_FORM = "https://VAULT/keys/NAME or https://VAULT/keys/NAME/VERSION"
_VERSION_FORM = "one version, https://VAULT/keys/NAME/VERSION"
# The name and the version become part of request paths, so only listed characters are allowed.
_key_id = matches(
    r"(?P<vault>https://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?)/keys/(?P<name>[A-Za-z0-9-]{1,127})"
    r"(?:/(?P<version>[0-9a-f]{32}))?"
)

_CREDENTIALS = "the credential could not get a token, or the vault does not accept it"
_USAGE = (
    "the key operations must include wrapKey and unwrapKey, and those of sign_key_id must include "
    "sign"
)
_REQUEST = "the key must be RSA of 2048 bits or more, oct-HSM for A256KW, EC P-256 for sign_key_id"
_NETWORK = "the vault's firewall or network rules refuse this client"
_CHALLENGE = "the vault asks for a token for a domain other than its own: check the host of key_id"
# Of azure-core and azure-identity.
_NO_TOKEN = ("CredentialUnavailableError", "ClientAuthenticationError")
_Row = tuple[KeyWrapperErrorKind, str | None]

# Source: "REST API error codes" of the Azure Key Vault REST API reference.
ERROR_TABLE: dict[str, _Row] = {
    "KeyDisabled": ("disabled", None),
    "KeyExpired": ("disabled", "the key is past its expiry date"),
    "KeyNotYetValid": ("disabled", "the activation date of the key is in the future"),
    "ObjectIsBeingDeleted": ("disabled", "the key is being deleted"),
    "ObjectIsDeletedButRecoverable": ("disabled", "the key is deleted and can be recovered"),
    "AccessDenied": ("denied", None),
    "ForbiddenByPolicy": ("denied", None),
    "ForbiddenByRbac": ("denied", None),
    "ForbiddenByFirewall": ("denied", _NETWORK),
    "ForbiddenByConnection": ("denied", _NETWORK),
    "Unauthorized": ("denied", _CREDENTIALS),
    "KeyOperationForbidden": ("denied", _USAGE),
    "BadParameter": ("denied", _REQUEST),
    "KeyNotFound": ("not-found", "no such key, or no such version, in this vault"),
    "Throttled": ("throttled", None),
    "TooManyRequests": ("throttled", None),
    "InternalServerError": ("unavailable", None),
    "ServiceUnavailable": ("unavailable", None),
}


class KeyVaultClient(Protocol):
    """The part of a `KeyClient` of azure-keyvault-keys that is used."""

    def send_request(self, request: object, **more: object) -> object: ...


ClientOf = Callable[[str], KeyVaultClient]


class _KeyId(NamedTuple):
    vault_url: str
    name: str
    version: str | None

    def __str__(self) -> str:
        end = "" if self.version is None else f"/{self.version}"
        return f"{self.vault_url}/keys/{self.name}{end}"

    @property
    def path(self) -> str:
        return str(self)[len(self.vault_url) :]

    def is_of(self, text: object) -> bool:
        """Whether a text names a version of this key, and the same version if this id has one. Key
        names are not case-sensitive."""
        other = _parsed(text)
        return (
            other is not None
            and other.version is not None
            and other.vault_url == self.vault_url
            and other.name.lower() == self.name.lower()
            and self.version in (None, other.version)
        )


class _Answer(NamedTuple):
    status: int
    body: Mapping[str, object]
    request_id: str | None


class AzureKeyVaultKeyWrapper:
    """The counterpart of `azureKeyVaultKeyWrapper` of @sealring/azure-key-vault: each unwraps what
    the other wrapped. Needs the key operations `unwrapKey` and, for a member, `wrapKey` and `get`,
    and `sign` on the signing key.

    A wrapped key records the exact version that made it. It never chooses which vault or key is
    called: a wrapped key that belongs to neither `key_id` nor `also_unwrap` is refused before any
    call.

    **RSA wrapping does not authenticate its origin**: anyone who has the public key can wrap a data
    key that they chose. With RSA-OAEP-256 a member needs `sign_key_id` and `sign_public_keys`; a
    reader needs only `sign_public_keys`.

    Args:
        key_id: `https://VAULT/keys/NAME`, whose current version is used, or one version of it.
        credential: a `TokenCredential`, such as one of azure-identity.
        clients: instead of a credential: a function that creates a `KeyClient` for a vault's URL,
            with `retry_total=0`.
        algorithm: `RSA-OAEP-256`, or `A256KW` for an oct-HSM key.
        also_unwrap: replaced keys of the same algorithm; 0 to 64.
        sign_key_id: one version of an EC key on P-256, which signs ring entries.
        sign_public_keys: pinned public keys as JSON Web Keys; a signature by any of these keys is
            accepted; 1 to 16. `fetch_sign_public_keys` gets them.
        call_timeout_seconds: timeout of the clients that the wrapper creates, for connecting and
            for reading; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option.
    """

    provider = _PROVIDER
    # Set only with sign_public_keys; without them, this wrapper is not an EntrySigner.
    sign: Callable[[bytes], bytes]
    """Signs a ring entry: ES256, 64 bytes. Raises KeyWrapperError for a failure, and `corrupt` also
    for a signature that no server with the pinned keys would accept."""
    verify: Callable[[bytes, bytes], bool]
    """Whether one of the pinned keys made this signature: r and s of 32 bytes each."""

    def __init__(
        self,
        *,
        key_id: str,
        credential: object = None,
        clients: ClientOf | None = None,
        algorithm: str = "RSA-OAEP-256",
        also_unwrap: Sequence[str] = (),
        sign_key_id: str | None = None,
        sign_public_keys: Sequence[Mapping[str, str]] | None = None,
        call_timeout_seconds: float = 5,
    ) -> None:
        self._key = _parsed_option("key_id", key_id, _parsed, _FORM)
        self.key_id = str(self._key)
        retired = names_of_keys(_OWNER, "also_unwrap", also_unwrap, _parsed, _FORM)
        self._may_ask = [self._key, *filter(None, map(_parsed, retired))]
        self._algorithm = one_of(_OWNER, "algorithm", algorithm, ["RSA-OAEP-256", "A256KW"])
        self._sign_key = (
            None
            if sign_key_id is None
            else _parsed_option("sign_key_id", sign_key_id, _parsed_version, _VERSION_FORM)
        )
        self._public_keys = [] if sign_public_keys is None else _public_keys(sign_public_keys)
        if self._sign_key is not None and not self._public_keys:
            raise TypeError(f"{_OWNER}: sign_key_id needs sign_public_keys")
        if algorithm == "A256KW" and self._public_keys:
            raise ValueError(f"{_OWNER}: A256KW wraps need no sign_public_keys and no sign_key_id")
        if self._public_keys:
            self.sign, self.verify = self._sign, self._verify
        self._vaults = _Vaults(credential, clients, call_timeout_seconds)
        self._current: tuple[_KeyId, float] | None = None
        self.supports = Supports(
            context=False,
            authenticated=algorithm == "A256KW",
            key_versions=self._key.version is None,
        )

    def __repr__(self) -> str:
        return f"AzureKeyVaultKeyWrapper({self.key_id})"

    def owns(self, wrapped: WrappedKey) -> bool:
        return wrapped.provider == _PROVIDER and self._find(wrapped.key_id) is not None

    def wrap(
        self,
        data_key: bytes | bytearray,
        context: Mapping[str, str],  # noqa: ARG002 - the ring binds it inside the plaintext.
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> WrappedKey:
        """Wraps 64 bytes: the data key and the hash of the context. Raises KeyWrapperError."""
        check_plaintext(_OWNER, data_key, _LENGTHS)
        check_context(_OWNER, context)
        answer = self._wrap(data_key, on_service_date)
        if isinstance(answer, KeyWrapperError):
            # A version that is refused may have been replaced.
            self._current = None
            raise answer
        return answer

    def unwrap(
        self,
        wrapped: WrappedKey,
        context: Mapping[str, str],  # noqa: ARG002 - the ring binds it inside the plaintext.
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> bytearray:
        """Returns what was wrapped. On failure, raises KeyWrapperError without any part of the
        SDK's error."""
        check_context(_OWNER, context)
        version = self._find(wrapped.key_id) if wrapped.provider == _PROVIDER else None
        if version is None:
            raise _corrupt("unwrap", "the wrapped key names another provider, vault or key")
        if not 1 <= len(wrapped.wrapped) <= _MAX_WRAPPED_BYTES:
            hint = f"the wrapped key is not 1 to {_MAX_WRAPPED_BYTES} bytes long"
            raise _corrupt("unwrap", hint)
        answer = self._unwrap(version, wrapped.wrapped, on_service_date)
        if isinstance(answer, KeyWrapperError):
            raise answer
        return answer

    def _sign(self, entry: bytes) -> bytes:
        key = self._sign_key
        if key is None:
            hint = "a member needs sign_key_id"
            raise KeyWrapperError("denied", _PROVIDER, operation="sign", hint=hint)
        digest = hashlib.sha256(entry).digest()
        answer = self._ask("sign", key, "sign", "ES256", digest, None)
        if isinstance(answer, KeyWrapperError):
            raise answer
        signature = bytes(answer)
        if not self._verify(entry, signature):
            hint = "the signature by sign_key_id was not made with a key in sign_public_keys"
            raise _corrupt("sign", hint)
        return signature

    def _verify(self, entry: bytes, signature: bytes) -> bool:
        return any(_is_signed(entry, signature, key) for key in self._public_keys)

    @staticmethod
    def fetch_sign_public_keys(
        sign_key_ids: Sequence[str],
        *,
        credential: object = None,
        clients: ClientOf | None = None,
        call_timeout_seconds: float = 5,
    ) -> list[dict[str, str]]:
        """The public keys of signing keys, to be pinned. Raises KeyWrapperError for a failure."""
        vaults = _Vaults(credential, clients, call_timeout_seconds)
        sequence(_OWNER, "sign_key_ids", sign_key_ids)
        keys = [
            _parsed_option(f"sign_key_ids[{index}]", text, _parsed_version, _VERSION_FORM)
            for index, text in enumerate(sign_key_ids)
        ]
        found = []
        for key in keys:
            answer = vaults.request("sign", "GET", key.vault_url, key.path, None, None)
            if isinstance(answer, KeyWrapperError):
                raise answer
            told = answer.body.get("key")
            jwk = (
                {name: str(told.get(name)) for name in ("crv", "x", "y")}
                if isinstance(told, dict)
                else {}
            )
            is_right = isinstance(told, dict) and key.is_of(told.get("kid"))
            if not is_right or _public_key(jwk) is None:
                raise _corrupt(
                    "sign",
                    "the answer of the vault is not a P-256 key with the requested identifier",
                )
            found.append({"kty": "EC", **jwk})
        return found

    def _find(self, text: object) -> _KeyId | None:
        """The key version that a text names: the vault and the key as the configuration spells
        them, the version from the text."""
        told = _parsed_version(text)
        key = next((one for one in self._may_ask if one.is_of(text)), None)
        return None if told is None or key is None else key._replace(version=told.version)

    def _wrap(
        self, plaintext: bytes | bytearray, on_service_date: OnServiceDate | None
    ) -> WrappedKey | KeyWrapperError:
        version = self._version_to_wrap_with(on_service_date)
        if isinstance(version, KeyWrapperError):
            return version
        made = self._ask(
            "wrap", version, "wrapkey", self._algorithm, bytes(plaintext), on_service_date
        )
        if isinstance(made, KeyWrapperError):
            return made
        if not 1 <= len(made) <= _MAX_WRAPPED_BYTES:
            return _corrupt("wrap", "the answer has no wrapped key")
        return WrappedKey(_PROVIDER, str(version), bytes(made))

    def _unwrap(
        self, version: _KeyId, wrapped: bytes, on_service_date: OnServiceDate | None
    ) -> bytearray | KeyWrapperError:
        """Runs in a separate frame, so that no traceback references an answer."""
        data = self._ask("unwrap", version, "unwrapkey", self._algorithm, wrapped, on_service_date)
        if isinstance(data, KeyWrapperError):
            return data
        return taken_data_key(_PROVIDER, data, _LENGTHS)

    def _version_to_wrap_with(
        self, on_service_date: OnServiceDate | None
    ) -> _KeyId | KeyWrapperError:
        """The choice is never left to the vault, because the vault would not report it."""
        if self._key.version is not None:
            return self._key
        current, now = self._current, time.monotonic()
        if current is not None and now < current[1]:
            return current[0]
        path = self._key.path
        answer = self._vaults.request(
            "wrap", "GET", self._key.vault_url, path, None, on_service_date
        )
        if isinstance(answer, KeyWrapperError):
            return answer
        told = answer.body.get("key")
        kid = told.get("kid") if isinstance(told, dict) else None
        version = self._find(kid) if self._key.is_of(kid) else None
        if version is None:
            return _corrupt("wrap", "the vault answered for a key other than key_id")
        self._current = version, now + _CURRENT_VERSION_SECONDS
        return version

    def _ask(
        self,
        operation: KeyWrapperOperation,
        version: _KeyId,
        method: str,
        algorithm: str,
        value: bytes,
        on_service_date: OnServiceDate | None,
    ) -> bytearray | KeyWrapperError:
        body = {"alg": algorithm, "value": base64url.encode(value)}
        path = f"{version.path}/{method}"
        answer = self._vaults.request(
            operation, "POST", version.vault_url, path, body, on_service_date
        )
        if isinstance(answer, KeyWrapperError):
            return answer
        told = answer.body.get("value")
        data = base64url.decode(told) if isinstance(told, str) else None
        if data is None:
            return _corrupt(operation, "the answer has no value")
        result = bytearray(data)
        if not version.is_of(answer.body.get("kid")):
            overwrite(result)
            return _corrupt(operation, "the vault answered for a key other than the requested one")
        return result


def _no_answer(error: Exception) -> ConnectionFailure:
    """Why there was no answer; empty if that is unknown. An expired credential says nothing
    about the permission to use the key."""
    found = connection_failure(error)
    if found is not None:
        return found
    # When the SDK itself refuses before a request, only the text shows why; it is never copied.
    if re.match("The challenge (?:resource|authorization)|The challenge contains", str(error)):
        return ConnectionFailure("ERR_AZURE_CHALLENGE_RESOURCE", _CHALLENGE)
    names = [base.__name__ for base in type(error).__mro__]
    name = next((one for one in names if one in _NO_TOKEN), "")
    return ConnectionFailure(name, _CREDENTIALS if name else "")


class _Vaults:
    """One client for each vault."""

    def __init__(
        self, credential: object, clients: ClientOf | None, call_timeout_seconds: float
    ) -> None:
        number(_OWNER, "call_timeout_seconds", call_timeout_seconds, 0.01, 60)
        if (credential is None) == (clients is None):
            raise TypeError(f"{_OWNER}: give either credential or clients")
        if clients is not None and not callable(clients):
            raise TypeError(f"{_OWNER}: clients must be a function")
        if credential is not None:
            with_method(_OWNER, "credential", credential, "get_token")
        self._make = clients or _own_clients(credential, call_timeout_seconds)
        self._clients: dict[str, KeyVaultClient] = {}

    def request(
        self,
        operation: KeyWrapperOperation,
        method: str,
        vault_url: str,
        path: str,
        body: Mapping[str, str] | None,
        on_service_date: OnServiceDate | None,
    ) -> _Answer | KeyWrapperError:
        """Makes one request. Returns its answer if the status is 200, otherwise the error."""
        answer = self._sent(method, vault_url, path, body, on_service_date)
        if isinstance(answer, ConnectionFailure):
            known = {name: value for name, value in answer._asdict().items() if value}
            return KeyWrapperError("unavailable", _PROVIDER, operation=operation, **known)
        if answer.status == 200:
            return answer
        error = answer.body.get("error")
        told = error if isinstance(error, dict) else {}
        inner = told.get("innererror")
        codes = (inner.get("code") if isinstance(inner, dict) else None, told.get("code"))
        code = next((one for one in codes if isinstance(one, str) and one in ERROR_TABLE), None)
        kind, hint = (
            ERROR_TABLE[code] if code is not None else (kind_of_status(answer.status), None)
        )
        if code is None and answer.status == 409:
            kind = "disabled"
        if code == "BadParameter" and operation == "unwrap":
            # For an unwrap, this code means that the vault rejects the wrapped key.
            kind, hint = "corrupt", None
        status, request_id = answer.status, answer.request_id
        return KeyWrapperError(
            kind,
            _PROVIDER,
            operation=operation,
            code=code,
            status=status,
            request_id=request_id,
            hint=hint,
        )

    def _sent(
        self,
        method: str,
        vault_url: str,
        path: str,
        body: Mapping[str, str] | None,
        on_service_date: OnServiceDate | None,
    ) -> _Answer | ConnectionFailure:
        from azure.core.rest import HttpRequest  # noqa: PLC0415 - the extra `azure`.

        try:
            if vault_url not in self._clients:
                self._clients[vault_url] = self._make(vault_url)
            answer = self._clients[vault_url].send_request(
                HttpRequest(method, vault_url + path, json=body)
            )
            status = answer.status_code  # type: ignore[attr-defined]
            headers = answer.headers  # type: ignore[attr-defined]
            note_date(headers.get("date"), on_service_date)
            request_id = headers.get("x-ms-request-id")
        except Exception as error:
            return _no_answer(error)
        try:
            told = answer.json()  # type: ignore[attr-defined]
        except Exception:
            told = None
        is_id = isinstance(request_id, str) and _request_id(request_id) is not None
        return _Answer(
            status, told if isinstance(told, dict) else {}, request_id if is_id else None
        )


_request_id = matches(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _own_clients(credential: object, timeout: float) -> ClientOf:
    from azure.keyvault.keys import KeyClient  # noqa: PLC0415 - the extra `azure`.

    def make(vault_url: str) -> KeyVaultClient:
        client: KeyVaultClient = KeyClient(
            vault_url,
            credential,
            retry_total=0,
            connection_timeout=timeout,
            read_timeout=timeout,
        )
        return client

    return make


def _parsed(text: object) -> _KeyId | None:
    """Lowercases the host name and drops port 443."""
    found = _key_id(text) if isinstance(text, str) else None
    if found is None:
        return None
    vault = found["vault"].lower().removesuffix(":443")
    return _KeyId(vault, found["name"], found["version"])


def _parsed_version(text: object) -> _KeyId | None:
    key = _parsed(text)
    return None if key is None or key.version is None else key


def _parsed_option(
    name: str, value: str, parse: Callable[[object], _KeyId | None], form: str
) -> _KeyId:
    key = parse(name_of_key(_OWNER, name, value, parse, form))
    assert key is not None  # noqa: S101 - it was parsed a moment ago.
    return key


def _public_keys(values: Sequence[Mapping[str, str]]) -> list[ec.EllipticCurvePublicKey]:
    sequence(_OWNER, "sign_public_keys", values)
    if not 1 <= len(values) <= _MAX_PUBLIC_KEYS:
        raise ValueError(f"{_OWNER}: sign_public_keys must be 1 to {_MAX_PUBLIC_KEYS} keys")
    keys = []
    for index, value in enumerate(values):
        key = _public_key(value)
        if key is None:
            told = "must be a public key on P-256 (kty EC, crv P-256, x, y)"
            raise ValueError(f"{_OWNER}: sign_public_keys[{index}] {told}")
        keys.append(key)
    return keys


def _public_key(jwk: object) -> ec.EllipticCurvePublicKey | None:
    """The P-256 key of a JSON Web Key; None for anything else. A private half is not read."""
    if not isinstance(jwk, Mapping) or jwk.get("crv") != "P-256":
        return None
    told = (jwk.get("x"), jwk.get("y"))
    x, y = (base64url.decode(one) if isinstance(one, str) else None for one in told)
    if x is None or y is None or len(x) != _COORDINATE_BYTES or len(y) != _COORDINATE_BYTES:
        return None
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + x + y)
    except ValueError:  # The key is not a point of the curve.
        return None


def _is_signed(entry: bytes, signature: bytes, key: ec.EllipticCurvePublicKey) -> bool:
    if len(signature) != 2 * _COORDINATE_BYTES:
        return False
    r, s = signature[:_COORDINATE_BYTES], signature[_COORDINATE_BYTES:]
    both = encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
    try:
        key.verify(both, entry, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _corrupt(operation: KeyWrapperOperation, hint: str) -> KeyWrapperError:
    return KeyWrapperError("corrupt", _PROVIDER, operation=operation, hint=hint)
