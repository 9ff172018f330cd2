"""Wraps data keys with a key of the transit engine of HashiCorp Vault or OpenBao."""

import json
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ..canonical_json import canonical_json
from ..derivation import DATA_KEY_BYTES, overwrite
from ..errors import KeyWrapperError, KeyWrapperErrorKind, KeyWrapperOperation
from ..failures import ConnectionFailure, connection_failure
from ..key_wrapper import OnServiceDate, Supports, WrappedKey
from ..options import number, show, text, with_method
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

_OWNER = "VaultTransitKeyWrapper"
_PROVIDER = "vault-transit"
# Longer than any ciphertext of a data key.
_MAX_WRAPPED_BYTES = 256
# Nonce (12 bytes), data key (32) and tag (16): no cipher of transit needs less.
_LEAST_CIPHERTEXT_BYTES = 60
_MAX_ANSWER_BYTES = 65_536

_SEGMENT = r"[A-Za-z0-9_](?:[A-Za-z0-9_.\-]{0,126}[A-Za-z0-9_])?"
_SEGMENTS = f"{_SEGMENT}(?:/{_SEGMENT}){{0,15}}"
_VERSION = "[1-9][0-9]{0,9}"
_key_name = matches(_SEGMENT)
# None of its parts is `.` or `..`, which a URL would resolve.
_mount_path = matches(_SEGMENTS)
_key_path = matches(f"(?P<mount>{_SEGMENTS})/keys/(?P<name>{_SEGMENT})")
_key_version = matches(f"(?P<path>.+):v(?P<version>{_VERSION})")
_ciphertext = matches(f"vault:v(?P<version>{_VERSION}):(?P<body>[A-Za-z0-9+/]+={{0,2}})")
_token_text = matches(r"[\x21-\x7e]{1,8192}")
_address = matches(
    r"https://[^\s/?#@]+(?:/[^\s?#@]*)?|http://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?/?"
)

_IGNORED = "this server ignores associated_data: Vault 1.13 or later, or OpenBao, is required"
_KEY_TYPE = "the transit key must be of type aes256-gcm96 or chacha20-poly1305, and not derived"
_Row = tuple[KeyWrapperErrorKind, str | None]

# Vault refuses with the status 400 for many reasons, which only the text shows. The known texts are
# listed here, are matched as a whole and are never copied. Any other text means `unavailable`.
_REFUSALS: tuple[tuple[str, _Row], ...] = (
    (r"(?:cipher|chacha20poly1305): message authentication failed", ("corrupt", None)),
    (r"invalid ciphertext length", ("corrupt", None)),
    (
        r"invalid ciphertext: (?:no prefix|wrong number of fields|could not decode base64|"
        r"version number could not be decoded|unable to decrypt)",
        ("corrupt", None),
    ),
    # This is not `corrupt`, because a standby node can be behind the node that rotated the key.
    (
        r"invalid ciphertext: version is too new",
        (
            "unavailable",
            "this node does not have the version of the transit key yet, or no longer has it",
        ),
    ),
    (
        r"ciphertext or signature version is disallowed by policy \(too old\)",
        ("disabled", "the version of the transit key is below its min_decryption_version"),
    ),
    (r"refusing to use soft-deleted key", ("disabled", "the transit key is soft-deleted")),
    (r"encryption key not found", ("not-found", "the transit key does not exist in this mount")),
    (
        r"'\[0\]\.associated_data' provided for non-AEAD cipher suite [a-z0-9-]+",
        ("denied", _KEY_TYPE),
    ),
    (r"missing 'context' for key derivation; .*", ("denied", _KEY_TYPE)),
    (r"message (?:de|en)cryption not supported for key type .*", ("denied", _KEY_TYPE)),
)
_STATUSES: dict[int, _Row] = {
    400: ("unavailable", "Vault refused the request for a reason that Sealring does not recognize"),
    403: ("denied", "the policy lacks the permission, or the token is unknown, expired or revoked"),
    404: ("not-found", "the mount or namespace does not exist"),
    405: ("denied", "the mount is not a transit engine"),
    501: ("unavailable", "Vault is not initialized"),
    503: ("unavailable", "Vault is sealed, or has no active node"),
}
_REDIRECTED = (
    "redirects from standby nodes are not followed: enable request forwarding, or set the address "
    "of the active node"
)


class VaultAdapter(Protocol):
    """The part of an adapter of hvac that is used."""

    def request(self, method: str, url: str, **more: object) -> object: ...


class VaultClient(Protocol):
    """The part of an `hvac.Client` that is used."""

    @property
    def adapter(self) -> VaultAdapter: ...


class _Key(NamedTuple):
    path: str
    mount: str
    name: str


class _Answer(NamedTuple):
    status: int
    body: object
    date: object


class VaultTransitKeyWrapper:
    """The counterpart of `vaultTransitKeyWrapper` of @sealring/vault-transit: each unwraps what the
    other wrapped. The context is the associated data. Needs `update` on `decrypt/KEY` and, for a
    member, on `encrypt/KEY`.

    A wrapped key never chooses which key is called: a wrapped key that names neither the configured
    key nor a key in `also_unwrap`, or is not in the canonical form, is refused before any call.

    Args:
        address: the address of Vault or OpenBao: an `https://` URL, or an `http://` URL of this
            machine. Not with a `client`.
        key_id: the transit key's name, of type `aes256-gcm96` or `chacha20-poly1305`, not derived.
        mount: where the transit engine is mounted, within the namespace.
        namespace: the namespace; by default the root namespace.
        token: the token, or a function that returns one and is called for every request. Not with a
            `client`.
        client: instead of address and token: an `hvac.Client` without a namespace; the wrapper
            does not close it.
        also_unwrap: whole paths of replaced keys, such as `team/transit/keys/old`; 0 to 64.
        call_timeout_seconds: timeout of the client that the wrapper creates, for connecting and for
            reading; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option, but does not show
    the token.
    """

    provider = _PROVIDER
    supports = Supports(key_versions=True)

    def __init__(
        self,
        *,
        key_id: str,
        address: str | None = None,
        mount: str = "transit",
        namespace: str | None = None,
        token: str | Callable[[], str] | None = None,
        client: VaultClient | None = None,
        also_unwrap: Sequence[str] = (),
        call_timeout_seconds: float = 5,
    ) -> None:
        name = name_of_key(_OWNER, "key_id", key_id, _key_name, "the name of a transit key")
        parts = [] if namespace is None else [_path("namespace", namespace)]
        whole = "/".join([*parts, _path("mount", mount)])
        self._key = _Key(f"{whole}/keys/{name}", whole, name)
        form = "the whole path of a transit key (transit/keys/…)"
        retired = names_of_keys(_OWNER, "also_unwrap", also_unwrap, _key_path, form)
        self._keys = {path: _parsed_path(path) for path in (self._key.path, *retired)}
        self.key_id = self._key.path
        number(_OWNER, "call_timeout_seconds", call_timeout_seconds, 0.01, 60)
        if (client is None) == (address is None) or (client is None) != (token is not None):
            raise TypeError(f"{_OWNER}: give either client, or address and token")
        self._token = token if callable(token) else None
        if isinstance(token, str):
            if _token_text(token) is None:
                raise ValueError(f"{_OWNER}: token must be 1 to 8192 visible ASCII characters")
        elif token is not None and not callable(token):
            raise TypeError(f"{_OWNER}: token must be a str or a function, got {show(token)}")
        if client is None:
            first = token if isinstance(token, str) else None
            self._client = _own_client(address, first, call_timeout_seconds)
        else:
            self._client = client
        with_method(_OWNER, "client.adapter", getattr(self._client, "adapter", None), "request")

    def __repr__(self) -> str:
        return f"VaultTransitKeyWrapper({self.key_id})"

    def owns(self, wrapped: WrappedKey) -> bool:
        return wrapped.provider == _PROVIDER and self._key_to_ask(wrapped.key_id) is not None

    def wrap(
        self,
        data_key: bytes | bytearray,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> WrappedKey:
        """Wraps 32 bytes that are not all equal. KeyWrapperError for a failure."""
        check_plaintext(_OWNER, data_key, [DATA_KEY_BYTES])
        check_context(_OWNER, context)
        answer = self._encrypt(data_key, context, on_service_date)
        if isinstance(answer, KeyWrapperError):
            raise answer
        return answer

    def unwrap(
        self,
        wrapped: WrappedKey,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> bytearray:
        """The data key, 32 bytes. Raises KeyWrapperError, without any part of the answer, for a
        failure."""
        check_context(_OWNER, context)
        key = self._key_to_ask(wrapped.key_id) if wrapped.provider == _PROVIDER else None
        if key is None:
            raise _corrupt("the wrapped key names another provider or transit key")
        if len(wrapped.wrapped) > _MAX_WRAPPED_BYTES:
            raise _corrupt(f"the wrapped key has more than {_MAX_WRAPPED_BYTES} bytes")
        ciphertext = wrapped.wrapped.decode("latin-1")
        named = _key_version(wrapped.key_id)
        if named is None or _version_of(ciphertext) != named["version"]:
            raise _corrupt("the wrapped key is not a ciphertext of the key version that it names")
        answer = self._decrypt(key, ciphertext, context, on_service_date)
        if isinstance(answer, KeyWrapperError):
            raise answer
        return answer

    def _key_to_ask(self, key_id: str) -> _Key | None:
        """One of the configured keys, never a path from the wrapped key."""
        found = _key_version(key_id)
        return None if found is None else self._keys.get(found["path"])

    def _encrypt(
        self,
        data_key: bytes | bytearray,
        context: Mapping[str, str],
        on_service_date: OnServiceDate | None,
    ) -> WrappedKey | KeyWrapperError:
        key, plaintext = self._key, b64encode(data_key).decode("ascii")
        data = self._call("encrypt", key, {"plaintext": plaintext}, context, on_service_date)
        if isinstance(data, KeyWrapperError):
            return data
        ciphertext = data.get("ciphertext")
        version = _version_of(ciphertext) if isinstance(ciphertext, str) else None
        if not isinstance(ciphertext, str) or version is None:
            return _corrupt("the answer has no wrapped key", "wrap")
        if len(ciphertext) > _MAX_WRAPPED_BYTES:
            return _corrupt("the answer has no wrapped key", "wrap")
        if str(data.get("key_version")) != version:
            return _corrupt("the answer and its ciphertext name different versions", "wrap")
        return WrappedKey(_PROVIDER, f"{key.path}:v{version}", ciphertext.encode("ascii"))

    def _decrypt(
        self,
        key: _Key,
        ciphertext: str,
        context: Mapping[str, str],
        on_service_date: OnServiceDate | None,
    ) -> bytearray | KeyWrapperError:
        """Runs in a separate frame, so that no traceback references an answer."""
        data = self._call("decrypt", key, {"ciphertext": ciphertext}, context, on_service_date)
        if isinstance(data, KeyWrapperError):
            return data
        return taken_data_key(_PROVIDER, _bytes_of(data.get("plaintext")), [DATA_KEY_BYTES])

    def _call(
        self,
        endpoint: str,
        key: _Key,
        body: dict[str, str],
        context: Mapping[str, str],
        on_service_date: OnServiceDate | None,
    ) -> Mapping[str, object] | KeyWrapperError:
        operation: KeyWrapperOperation = "wrap" if endpoint == "encrypt" else "unwrap"
        bound = b64encode(canonical_json(dict(context)).encode("utf-8")).decode("ascii")
        whole = {**body, "associated_data": bound}
        if not self._has_token():
            hint = "the token function failed, or returned something other than visible ASCII"
            return KeyWrapperError("unavailable", _PROVIDER, operation=operation, hint=hint)
        answer = self._post(f"/v1/{key.mount}/{endpoint}/{key.name}", whole)
        if isinstance(answer, ConnectionFailure):
            known = {name: value for name, value in answer._asdict().items() if value}
            return KeyWrapperError("unavailable", _PROVIDER, operation=operation, **known)
        status, told, date = answer
        if not 200 <= status <= 299:
            kind, why = _meaning(status, told)
            return KeyWrapperError(kind, _PROVIDER, operation=operation, status=status, hint=why)
        if told is None:
            hint = "the answer is not JSON"
            return KeyWrapperError("unavailable", _PROVIDER, operation=operation, hint=hint)
        warnings = told.get("warnings") if isinstance(told, dict) else None
        if any("associated_data" in str(one) for one in warnings or ()):
            return KeyWrapperError("denied", _PROVIDER, operation=operation, hint=_IGNORED)
        note_date(date, on_service_date)
        data = told.get("data") if isinstance(told, dict) else None
        return data if isinstance(data, dict) else {}

    def _has_token(self) -> bool:
        """Whether there is a token for this request. A function that returns the token is called
        first; an error that it raises is dropped, because it can contain a token."""
        if self._token is None:
            return True
        try:
            token = self._token()
        except Exception:
            return False
        if not isinstance(token, str) or _token_text(token) is None:
            return False
        self._client.adapter.token = token  # type: ignore[attr-defined]
        return True

    def _post(self, url: str, body: dict[str, str]) -> _Answer | ConnectionFailure:
        """Makes one POST. Returns the answer or, if there was none, the failure, which is empty if
        the cause is unknown. hvac returns the response object or, for a 200, its JSON."""
        try:
            answer = self._client.adapter.request("post", url, json=body, raise_exception=False)
            if isinstance(answer, dict):
                return _Answer(200, answer, None)
            status, content = answer.status_code, answer.content  # type: ignore[attr-defined]
            date = answer.headers.get("date")  # type: ignore[attr-defined]
        except Exception as error:
            return connection_failure(error) or ConnectionFailure("", "")
        if not isinstance(status, int) or not isinstance(content, bytes):
            return ConnectionFailure("", "")
        try:
            told = json.loads(content) if len(content) <= _MAX_ANSWER_BYTES else None
        except ValueError:
            told = None
        return _Answer(status, told, date)


def _meaning(status: int, told: object) -> _Row:
    if 300 <= status <= 399:
        return "unavailable", _REDIRECTED
    errors = told.get("errors") if isinstance(told, dict) else None
    texts = [one for one in errors if isinstance(one, str)] if isinstance(errors, list) else []
    for pattern, row in _REFUSALS if status == 400 else ():
        if any(re.fullmatch(pattern, one) for one in texts):
            return row
    return _STATUSES.get(status) or (kind_of_status(status), None)


def _version_of(ciphertext: str) -> str | None:
    """The version in `vault:v3:…`; None for any other form. Vault itself is less strict."""
    found = _ciphertext(ciphertext)
    data = None if found is None else _bytes_of(found["body"])
    is_long = data is not None and len(data) >= _LEAST_CIPHERTEXT_BYTES
    return found["version"] if found is not None and is_long else None


def _bytes_of(text: object) -> bytearray | None:
    """Decodes canonical base64, with its padding; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        data = bytearray(b64decode(text, validate=True))
    except (NotBase64, ValueError):
        return None
    if b64encode(data).decode("ascii") == text:
        return data
    overwrite(data)
    return None


def _corrupt(hint: str, operation: KeyWrapperOperation = "unwrap") -> KeyWrapperError:
    return KeyWrapperError("corrupt", _PROVIDER, operation=operation, hint=hint)


def _path(name: str, value: object) -> str:
    # Vault prints the paths of mounts and of namespaces with a slash at the end.
    path = text(_OWNER, name, value, 2_048).removesuffix("/")
    if _mount_path(path) is None:
        raise ValueError(f"{_OWNER}: {name} must be a path of Vault, got {ascii(path[:120])}")
    return path


def _parsed_path(path: str) -> _Key:
    mount, _, name = path.rpartition("/keys/")
    return _Key(path, mount, name)


def _own_client(address: object, token: str | None, timeout: float) -> VaultClient:
    # No message contains the text of the address, which can hold a password.
    if _address(text(_OWNER, "address", address, 2_048)) is None:
        raise ValueError(
            f"{_OWNER}: address must be an https:// URL, or an http:// URL of this machine"
        )
    import hvac  # noqa: PLC0415 - the extra `vault`.

    client: VaultClient = hvac.Client(
        url=address,
        token=token or "",
        timeout=timeout,
        allow_redirects=False,
        adapter=hvac.adapters.RawAdapter,
    )
    return client
