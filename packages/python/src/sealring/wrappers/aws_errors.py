"""What a failure of AWS KMS means.

Sources: "Errors" of Decrypt and "Common errors" of the AWS KMS API reference; the throttling codes
of the AWS SDKs; the exceptions of botocore.
"""

from ..errors import KeyWrapperError, KeyWrapperErrorKind
from ..foreign import AwsFailure

_CREDENTIALS = "the credentials are missing, wrong or expired"
_CLOCK = "this machine's clock differs from the service's"
_USAGE = "the KMS key must be a symmetric encryption key (SYMMETRIC_DEFAULT, ENCRYPT_DECRYPT)"
_REQUEST = "KMS does not accept the request: check key_id and its region"
_STATE = "the KMS key is pending deletion, pending import or unavailable"

_Row = tuple[KeyWrapperErrorKind, str | None]


def _rows(kind: KeyWrapperErrorKind, hint: str | None, names: str) -> dict[str, _Row]:
    return dict.fromkeys(names.split(), (kind, hint))


ERROR_TABLE: dict[str, _Row] = {
    **_rows(
        "throttled",
        None,
        "ThrottlingException Throttling ThrottledException LimitExceededException "
        "RequestLimitExceeded RequestThrottled RequestThrottledException TooManyRequestsException",
    ),
    **_rows("disabled", None, "DisabledException"),
    **_rows("disabled", _STATE, "KMSInvalidStateException"),
    **_rows(
        "denied",
        None,
        "AccessDeniedException AccessDenied NotAuthorized OptInRequired InvalidGrantTokenException",
    ),
    **_rows(
        "denied",
        _CREDENTIALS,
        "UnrecognizedClientException InvalidClientTokenId MissingAuthenticationToken "
        "IncompleteSignature InvalidSignatureException",
    ),
    # A configuration error amounts to it: the caller may not use the key this way.
    **_rows("denied", _USAGE, "InvalidKeyUsageException UnsupportedOperationException"),
    **_rows("denied", _REQUEST, "ValidationException ValidationError InvalidArnException"),
    **_rows("not-found", "no such KMS key in this account and region", "NotFoundException"),
    **_rows("corrupt", None, "InvalidCiphertextException IncorrectKeyException"),
    **_rows(
        "unavailable",
        None,
        "KeyUnavailableException KMSInternalException DependencyTimeoutException "
        "CloudHsmClusterInvalidConfigurationException CloudHsmClusterNotActiveException "
        "CustomKeyStoreInvalidStateException XksProxyIncorrectAuthenticationCredentialException "
        "XksProxyInvalidConfigurationException XksProxyInvalidResponseException "
        "XksProxyUriUnreachableException XksProxyVpcEndpointServiceInvalidConfigurationException "
        "XksProxyVpcEndpointServiceNotFoundException InternalFailure InternalServerError "
        "ServiceUnavailable ServiceUnavailableException RequestTimeout RequestTimeoutException",
    ),
    # Not `denied`, whatever their status: credentials or a clock that lapsed say nothing about the
    # right to use the key, and three denials stop a fleet from sealing.
    **_rows(
        "unavailable",
        _CREDENTIALS,
        "ExpiredTokenException ExpiredToken NoCredentialsError PartialCredentialsError "
        "CredentialRetrievalError TokenRetrievalError SSOError",
    ),
    **_rows("unavailable", _CLOCK, "RequestExpired RequestTimeTooSkewed"),
    **_rows(
        "unavailable",
        None,
        "EndpointConnectionError ConnectTimeoutError ReadTimeoutError ConnectionClosedError "
        "ProxyConnectionError SSLError HTTPClientError",
    ),
}

_BY_STATUS: dict[int | None, KeyWrapperErrorKind] = {
    401: "denied",
    403: "denied",
    404: "not-found",
    429: "throttled",
}


def kms_error(provider: str, failure: AwsFailure) -> KeyWrapperError:
    """A name in the table decides. Else the status does: a 403 of a proxy has no code. Else it is
    `unavailable`: the unknown never ends a key's life."""
    code = next((name for name in failure.names if name in ERROR_TABLE), None)
    unknown: _Row = (_BY_STATUS.get(failure.status, "unavailable"), None)
    kind, hint = unknown if code is None else ERROR_TABLE[code]
    return KeyWrapperError(
        kind,
        provider,
        code=code,
        status=failure.status,
        request_id=failure.request_id,
        hint=hint,
    )
