"""What can go wrong: the world's failures, each with a closed kind. The caller's mistakes are
TypeError and ValueError."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    _SdkInvalidRequestState = Exception
else:
    try:
        # The boundary of the MCP Python SDK logs the reason of its own exception only.
        from mcp.server.request_state import InvalidRequestState as _SdkInvalidRequestState
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "mcp":
            raise
        _SdkInvalidRequestState = Exception

InvalidReason = Literal["malformed", "unknown key", "seal"]

SealUnavailableReason = Literal[
    "no active key",
    "key proof too old",
    "ring read too old",
    "key refused by the kms",
    "token limit of the key reached",
]

# Mildest first: of several key wrappers, the mildest answer counts.
KeyWrapperErrorKind = Literal[
    "throttled", "unavailable", "denied", "disabled", "not-found", "corrupt"
]

RingStoreErrorKind = Literal["unavailable", "denied", "corrupt", "too-large"]


class InvalidRequestState(_SdkInvalidRequestState):
    """A token was refused. Its text is the reason; nothing of token, payload or key is kept.

    Where the MCP Python SDK is installed, this is a subclass of its own `InvalidRequestState`.

    * `malformed`: not the canonical text of a token of an accepted format.
    * `unknown key`: well formed, but no key that may open it now is held.
    * `seal`: authentication failed.
    """

    def __init__(self, reason: InvalidReason) -> None:
        super().__init__(reason)
        self.reason: InvalidReason = reason


class SealUnavailableError(Exception):
    """No key may seal at this moment, and an old one must not be used instead: see `health()`."""

    def __init__(self, reason: SealUnavailableReason) -> None:
        super().__init__(f"cannot seal: {reason}")
        self.reason: SealUnavailableReason = reason


class CodecClosedError(Exception):
    """The codec holds no keys: it was closed, not started yet, or started before a fork."""

    def __init__(self, detail: str = "the codec is closed") -> None:
        super().__init__(detail)


class KeyWrapperError(Exception):
    """The key service refused or failed. The vendor's own error is never attached or quoted: it
    can hold the data key.

    * `throttled`, `unavailable`: may pass.
    * `denied`: the caller may not use the key. `disabled`: nobody may. `not-found`: no such key.
    * `corrupt`: the wrapped key, its context or the service's answer failed a check.
    """

    def __init__(
        self,
        kind: KeyWrapperErrorKind,
        provider: str,
        *,
        code: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        hint: str | None = None,
    ) -> None:
        facts = (code, status and f"HTTP {status}", request_id and f"request {request_id}", hint)
        told = ", ".join(fact for fact in facts if isinstance(fact, str))
        super().__init__(f"{provider} unwrap: {kind}{f' ({told})' if told else ''}")
        self.kind: KeyWrapperErrorKind = kind
        self.provider = provider
        self.code = code
        self.status = status
        self.request_id = request_id


class RingStoreError(Exception):
    """The ring store failed, or what it holds is no acceptable ring document. The text is ours: a
    vendor's may carry credentials."""

    def __init__(self, kind: RingStoreErrorKind, detail: str) -> None:
        super().__init__(f"ring store {kind}: {detail}")
        self.kind: RingStoreErrorKind = kind


def may_pass(error: KeyWrapperError | RingStoreError) -> bool:
    return error.kind in ("throttled", "unavailable")
