"""The meaning of AWS KMS failures.

Sources: "Errors" of Decrypt and "Common errors" of the AWS KMS API reference; the throttling codes
of the AWS SDKs; the exceptions of botocore.
"""

from ..aws import CLOCK, CREDENTIALS, AwsFailure, aws_error_rows
from ..errors import KeyWrapperError, KeyWrapperErrorKind, KeyWrapperOperation
from ..failures import rows

_USAGE = "the KMS key must be a symmetric encryption key (SYMMETRIC_DEFAULT, ENCRYPT_DECRYPT)"
_REQUEST = "KMS does not accept the request: check key_id and its region"
_STATE = "the KMS key is pending deletion, pending import or unavailable"

_Row = tuple[KeyWrapperErrorKind, str | None]
_UNAVAILABLE: _Row = ("unavailable", None)

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
    "KMSInvalidStateException": ("disabled", _STATE),
    "InvalidGrantTokenException": ("denied", None),
    # A configuration error counts as `denied`, because the caller may not use the key this way.
    **rows(("denied", _USAGE), "InvalidKeyUsageException UnsupportedOperationException"),
    "InvalidArnException": ("denied", _REQUEST),
    "NotFoundException": ("not-found", "no such KMS key in this account and region"),
    **rows(("corrupt", None), "InvalidCiphertextException IncorrectKeyException"),
    **rows(
        _UNAVAILABLE,
        "KeyUnavailableException KMSInternalException DependencyTimeoutException "
        "CloudHsmClusterInvalidConfigurationException CloudHsmClusterNotActiveException "
        "CustomKeyStoreInvalidStateException XksProxyIncorrectAuthenticationCredentialException "
        "XksProxyInvalidConfigurationException XksProxyInvalidResponseException "
        "XksProxyUriUnreachableException XksProxyVpcEndpointServiceInvalidConfigurationException "
        "XksProxyVpcEndpointServiceNotFoundException",
    ),
}

_BY_STATUS: dict[int | None, KeyWrapperErrorKind] = {
    401: "denied",
    403: "denied",
    404: "not-found",
    429: "throttled",
}


def kms_error(
    provider: str, failure: AwsFailure, operation: KeyWrapperOperation = "unwrap"
) -> KeyWrapperError:
    """Classifies by a name in the table, otherwise by the status, because a 403 from a proxy has no
    code. Anything else is `unavailable`, so that an unknown error never ends the use of a key."""
    unknown: _Row = (_BY_STATUS.get(failure.status, "unavailable"), None)
    code, (kind, hint) = failure.row_of(ERROR_TABLE) or (None, unknown)
    if code is None and failure.connection is not None:
        code, hint = failure.connection
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
