"""Why a call got no answer, in the codes and sentences that @sealring/core uses."""

import errno
import socket
import ssl
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from .errors import RingStoreError

Row = TypeVar("Row")


class ConnectionFailure(NamedTuple):
    """A code from a closed list and a fixed sentence."""

    code: str
    hint: str


_TRUST = (
    "the server's certificate is not trusted: add its certificate authority to SSL_CERT_FILE,"
    " or pass it as an option of the client"
)
_HINTS: Mapping[str, tuple[str, ...]] = {
    "the connection was refused: check the host and the port": ("ECONNREFUSED",),
    "the connection was closed before an answer arrived": ("ECONNRESET", "ECONNABORTED", "EPIPE"),
    "the host name does not exist: check the address": ("ENOTFOUND",),
    "the host name could not be resolved: check DNS": ("EAI_AGAIN", "EAI_FAIL", "EAI_NODATA"),
    "the host cannot be reached: check routes and firewalls": (
        "EHOSTUNREACH",
        "ENETUNREACH",
        "EHOSTDOWN",
    ),
    "no answer in time": ("ETIMEDOUT",),
    _TRUST: (
        "DEPTH_ZERO_SELF_SIGNED_CERT",
        "SELF_SIGNED_CERT_IN_CHAIN",
        "UNABLE_TO_GET_ISSUER_CERT",
        "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
        "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
        "CERT_UNTRUSTED",
    ),
    "the certificate of the server has expired or is not valid yet: check it, and the clock of"
    " this machine": ("CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"),
    "the certificate of the server is for a different host name: check the address": (
        "HOSTNAME_MISMATCH",
    ),
    "the server does not use TLS on this port: check the address": (
        "ERR_SSL_WRONG_VERSION_NUMBER",
        "ERR_SSL_PACKET_LENGTH_TOO_LONG",
        "ERR_SSL_UNKNOWN_PROTOCOL",
        "ERR_POSTGRES_NO_TLS",
    ),
    "the TLS handshake failed: check whether the server uses TLS on this port": ("EPROTO",),
}
_BY_CODE = {code: hint for hint, codes in _HINTS.items() for code in codes}

# OpenSSL's verification results (x509_vfy.h), by the names that Node.js gives them.
_VERIFY_CODES = {
    2: "UNABLE_TO_GET_ISSUER_CERT",
    9: "CERT_NOT_YET_VALID",
    10: "CERT_HAS_EXPIRED",
    18: "DEPTH_ZERO_SELF_SIGNED_CERT",
    19: "SELF_SIGNED_CERT_IN_CHAIN",
    20: "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    21: "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    27: "CERT_UNTRUSTED",
    62: "HOSTNAME_MISMATCH",
    64: "HOSTNAME_MISMATCH",
}
# OpenSSL's reasons for a failed handshake with a server that does not speak TLS.
_TLS_REASONS = frozenset({"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "UNKNOWN_PROTOCOL"})
_RESOLVER = {
    socket.EAI_NONAME: "ENOTFOUND",
    socket.EAI_AGAIN: "EAI_AGAIN",
    socket.EAI_FAIL: "EAI_FAIL",
    getattr(socket, "EAI_NODATA", None): "ENOTFOUND",
}
# The SDKs wrap the system's error in several other errors.
_MAX_DEPTH = 12


def rows(row: Row, names: str) -> dict[str, Row]:
    """The same table row for each of several error names."""
    return dict.fromkeys(names.split(), row)


def connection_failure(error: BaseException) -> ConnectionFailure | None:
    """Why a call got no answer; None if the error does not show why. Reads the numbers and classes
    of the error and of the errors that it was raised from, never a message."""
    queue: list[object] = [error]
    seen: list[object] = []
    while queue and len(seen) < _MAX_DEPTH:
        each = queue.pop(0)
        if not isinstance(each, BaseException) or any(each is one for one in seen):
            continue
        seen.append(each)
        code = _code_of(each)
        if code in _BY_CODE:
            return failure_with(code)
        # urllib3 and requests keep the cause in the attribute `reason` or among the arguments.
        inner = [getattr(each, "reason", None), *each.args]
        queue += [each.__cause__, each.__context__, *inner]
    return None


def failure_with(code: str) -> ConnectionFailure:
    """The failure for a code that is in the table."""
    return ConnectionFailure(code, _BY_CODE[code])


def unreachable(error: BaseException, service: str) -> RingStoreError | None:
    """The error of a store whose service gave no answer; None if `error` does not show why.
    `service` is the name of the service in the message."""
    found = connection_failure(error)
    return None if found is None else unreachable_by(found, service)


def unreachable_by(failure: ConnectionFailure, service: str) -> RingStoreError:
    """The error of a store for a connection failure whose cause is known."""
    detail = f"{service} cannot be reached: {failure.hint} ({failure.code})"
    return RingStoreError("unavailable", detail, code=failure.code)


def _code_of(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _VERIFY_CODES.get(error.verify_code, "CERT_UNTRUSTED")
    if isinstance(error, ssl.SSLError):
        return f"ERR_SSL_{error.reason}" if error.reason in _TLS_REASONS else "EPROTO"
    if isinstance(error, socket.gaierror):
        return _RESOLVER.get(error.errno, "EAI_FAIL")
    if isinstance(error, TimeoutError):
        return "ETIMEDOUT"
    number = error.errno if isinstance(error, OSError) else None
    return errno.errorcode.get(number, "") if isinstance(number, int) else ""
