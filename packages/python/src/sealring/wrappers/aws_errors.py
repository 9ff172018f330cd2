"""The meaning of AWS KMS failures.

Sources: "Errors" of Decrypt and "Common errors" of the AWS KMS API reference; "Key states of AWS
KMS keys" of the AWS KMS Developer Guide, for the messages of KMSInvalidStateException; the
throttling codes of the AWS SDKs; the exceptions of botocore.
"""

import re

from ..aws import CLOCK, CREDENTIALS, aws_error_rows, aws_failure, member
from ..errors import KeyWrapperError, KeyWrapperErrorKind, KeyWrapperOperation
from ..failures import rows
from ..key_wrapper import OnServiceDate

_USAGE = "the KMS key must be a symmetric encryption key (SYMMETRIC_DEFAULT, ENCRYPT_DECRYPT)"
_REQUEST = "KMS does not accept the request: check key_id and its region"
_STATE = (
    "the KMS key is not usable at the moment: check its state, and its key store if it has a custom"
    " one"
)
_OPERATIONS = ("Decrypt", "Encrypt", "GenerateDataKey")

_Row = tuple[KeyWrapperErrorKind, str | None]
_UNAVAILABLE: _Row = ("unavailable", None)
_INVALID_STATE = "KMSInvalidStateException"
# The meaning of a KMSInvalidStateException about a state that an operator chose.
_ENDED: _Row = ("disabled", "the KMS key is pending deletion or pending import")
_ENDED_MESSAGE = re.compile(r" is pending (?:(?:replica )?deletion|import)\b", re.ASCII)

ERROR_TABLE: dict[str, _Row] = {
    **aws_error_rows(
        denied=("denied", None),
        credentials=("denied", CREDENTIALS),
        # These are not `denied`, whatever their status: expired credentials and a wrong clock say
        # nothing about the permission to use the key, and three denials stop a fleet from sealing.
        expired=("unavailable", CREDENTIALS),
        clock=("unavailable", CLOCK),
        request=("denied", _REQUEST),
        throttled=("throttled", None),
        busy=_UNAVAILABLE,
    ),
    "DisabledException": ("disabled", None),
    # KMS also answers every failure of an external key store with this name: see `_ENDED_MESSAGE`.
    _INVALID_STATE: ("unavailable", _STATE),
    "InvalidGrantTokenException": ("denied", None),
    # A configuration error counts as `denied`, because the caller may not use the key this way.
    **rows(("denied", _USAGE), "InvalidKeyUsageException UnsupportedOperationException"),
    "InvalidArnException": ("denied", _REQUEST),
    "NotFoundException": ("not-found", "no such KMS key in this account and region"),
    **rows(("corrupt", None), "InvalidCiphertextException IncorrectKeyException"),
    **rows(
        _UNAVAILABLE,
        "KeyUnavailableException KMSInternalException DependencyTimeoutException",
    ),
}

_BY_STATUS: dict[int | None, KeyWrapperErrorKind] = {
    401: "denied",
    403: "denied",
    404: "not-found",
    429: "throttled",
}


def kms_error(
    provider: str,
    error: Exception,
    on_service_date: OnServiceDate | None,
    operation: KeyWrapperOperation = "unwrap",
) -> KeyWrapperError:
    """Classifies by a name in the table, otherwise by the status, because a 403 from a proxy has no
    code. Anything else is `unavailable`, so that an unknown error never ends the use of a key. The
    message is only compared with a fixed text, and never copied."""
    failure = aws_failure(error, _OPERATIONS, on_service_date)
    unknown: _Row = (_BY_STATUS.get(failure.status, "unavailable"), None)
    code, (kind, hint) = failure.row_of(ERROR_TABLE) or (None, unknown)
    if code is None and failure.connection is not None:
        code, hint = failure.connection
    if code == _INVALID_STATE and _is_ended(error):
        kind, hint = _ENDED
    status, request_id = failure.status, failure.request_id
    return KeyWrapperError(
        kind,
        provider,
        operation=operation,
        code=code,
        status=status,
        request_id=request_id,
        hint=hint,
    )


def _is_ended(error: Exception) -> bool:
    message = member(getattr(error, "response", None), "Error", "Message")
    return isinstance(message, str) and _ENDED_MESSAGE.search(message) is not None
