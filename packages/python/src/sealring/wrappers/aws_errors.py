"""What a failure of AWS KMS means.

Sources: "Errors" of Decrypt and "Common errors" of the AWS KMS API reference; the throttling codes
of the AWS SDKs; the exceptions of botocore.
"""

from ..aws import CREDENTIALS, AwsFailure, rows
from ..errors import KeyWrapperError, KeyWrapperErrorKind, KeyWrapperOperation

_CLOCK = "this machine's clock differs from the service's"
_USAGE = "the KMS key must be a symmetric encryption key (SYMMETRIC_DEFAULT, ENCRYPT_DECRYPT)"
_REQUEST = "KMS does not accept the request: check key_id and its region"
_STATE = "the KMS key is pending deletion, pending import or unavailable"

_Row = tuple[KeyWrapperErrorKind, str | None]

_TABLE: dict[str, _Row] = {
    **rows(
        ("throttled", None),
        "ThrottlingException Throttling ThrottledException LimitExceededException "
        "RequestLimitExceeded RequestThrottled RequestThrottledException TooManyRequestsException",
    ),
    "DisabledException": ("disabled", None),
    "KMSInvalidStateException": ("disabled", _STATE),
    **rows(
        ("denied", None),
        "AccessDeniedException AccessDenied NotAuthorized OptInRequired InvalidGrantTokenException",
    ),
    **rows(
        ("denied", CREDENTIALS),
        "UnrecognizedClientException InvalidClientTokenId MissingAuthenticationToken "
        "IncompleteSignature InvalidSignatureException",
    ),
    # A configuration error amounts to it: the caller may not use the key this way.
    **rows(("denied", _USAGE), "InvalidKeyUsageException UnsupportedOperationException"),
    **rows(("denied", _REQUEST), "ValidationException ValidationError InvalidArnException"),
    "NotFoundException": ("not-found", "no such KMS key in this account and region"),
    **rows(("corrupt", None), "InvalidCiphertextException IncorrectKeyException"),
    **rows(
        ("unavailable", None),
        "KeyUnavailableException KMSInternalException DependencyTimeoutException "
        "CloudHsmClusterInvalidConfigurationException CloudHsmClusterNotActiveException "
        "CustomKeyStoreInvalidStateException XksProxyIncorrectAuthenticationCredentialException "
        "XksProxyInvalidConfigurationException XksProxyInvalidResponseException "
        "XksProxyUriUnreachableException XksProxyVpcEndpointServiceInvalidConfigurationException "
        "XksProxyVpcEndpointServiceNotFoundException InternalFailure InternalServerError "
        "ServiceUnavailable ServiceUnavailableException RequestTimeout RequestTimeoutException "
        "EndpointConnectionError ConnectTimeoutError ReadTimeoutError ConnectionClosedError "
        "ProxyConnectionError SSLError HTTPClientError",
    ),
    # Not `denied`, whatever their status: credentials or a clock that lapsed say nothing about the
    # right to use the key, and three denials stop a fleet from sealing.
    **rows(
        ("unavailable", CREDENTIALS),
        "ExpiredTokenException ExpiredToken NoCredentialsError PartialCredentialsError "
        "CredentialRetrievalError TokenRetrievalError SSOError",
    ),
    **rows(("unavailable", _CLOCK), "RequestExpired RequestTimeTooSkewed"),
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
    """A name in the table decides. Else the status does: a 403 of a proxy has no code. Else it is
    `unavailable`: the unknown never ends a key's life."""
    unknown: _Row = (_BY_STATUS.get(failure.status, "unavailable"), None)
    code, (kind, hint) = failure.row_of(_TABLE) or (None, unknown)
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
