"""How long a start waits for a failure to pass."""

from typing import Literal

from ..errors import KeyWrapperError, RingStoreError
from .learn_anew import LineageError

Patience = Literal["none", "short", "long"]
"""`none`: the failure lasts until someone changes something. `short`: the same, except on a machine
that is still starting, because its resolver and credentials depend on services that may not be
running yet. `long`: the failure may pass by itself."""

# As in @sealring/core.
LASTING = frozenset(
    # The place for the ring does not exist, or a directory in its path is a file.
    "ENOENT ENOTDIR NoSuchBucket ResourceNotFoundException ContainerNotFound notFound "
    "3D000 3F000 42P01 "
    # The place for the ring is in another region.
    "AuthorizationHeaderMalformed IllegalLocationConstraintException PermanentRedirect "
    # The other end is not the intended one, or its identity cannot be verified.
    "CERT_UNTRUSTED DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN "
    "UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_GET_ISSUER_CERT_LOCALLY UNABLE_TO_VERIFY_LEAF_SIGNATURE "
    "ERR_TLS_CERT_ALTNAME_INVALID HOSTNAME_MISMATCH ERR_SSL_WRONG_VERSION_NUMBER "
    "ERR_SSL_PACKET_LENGTH_TOO_LONG ERR_SSL_UNKNOWN_PROTOCOL ERR_POSTGRES_NO_TLS "
    "ERR_AZURE_CHALLENGE_RESOURCE".split()
)
LASTING_IF_STARTED = frozenset(
    "ENOTFOUND ExpiredToken ExpiredTokenException "
    # Names of errors of botocore, azure-identity and google-auth.
    "NoCredentialsError PartialCredentialsError CredentialRetrievalError TokenRetrievalError "
    "SSOError ClientAuthenticationError CredentialUnavailableError DefaultCredentialsError "
    "RefreshError".split()
)


def patience_with(error: RingStoreError | KeyWrapperError) -> Patience:
    """How long to wait for such a failure to pass by itself."""
    if isinstance(error, LineageError):
        return "long"
    if isinstance(error, RingStoreError):
        return _patience_with_code(error.code) if error.kind == "unavailable" else "none"
    if error.kind not in ("unavailable", "throttled"):
        return "none"
    if not error.causes:
        return _patience_with_code(error.code)
    # One of several key wrappers is enough for most calls, so the failure that may pass counts.
    found = [patience_with(cause) for cause in error.causes]
    return "long" if "long" in found else "short" if "short" in found else "none"


def _patience_with_code(code: str | None) -> Patience:
    if code in LASTING:
        return "none"
    return "short" if code in LASTING_IF_STARTED else "long"
