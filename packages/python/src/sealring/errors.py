"""The errors that report failures, each with a kind or reason from a closed set. A mistake of the
caller raises TypeError or ValueError instead."""

import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, get_args

_ERRORS_PAGE = "https://github.com/sealring/sealring/blob/main/docs/errors.md"

InvalidReason = Literal["malformed", "unknown key", "seal"]

SealUnavailableReason = Literal[
    "no active key",
    "KMS check too old",
    "ring read too old",
    "key refused by the kms",
    "token limit of the key reached",
]

# Mildest first: of several key wrappers, the mildest answer counts.
KeyWrapperErrorKind = Literal[
    "throttled", "unavailable", "denied", "disabled", "not-found", "corrupt"
]

RingStoreErrorKind = Literal["unavailable", "absent", "denied", "corrupt", "too-large", "read-only"]

KeyWrapperOperation = Literal["wrap", "unwrap", "generate", "sign"]


@lru_cache(maxsize=64)
def _section_on(title: str) -> str:
    """The URL of the section with this title in the documentation of errors: the page, with the
    anchor of the title."""
    anchor = re.sub("[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
    return f"{_ERRORS_PAGE}#{anchor}"


class InvalidRequestState(Exception):  # noqa: N818 - as the SDK calls its own.
    """A token was refused. The text of the error is the reason; the error keeps no part of the
    token, the payload or a key. In a process that has loaded the request state of the MCP Python
    SDK, the error is also an instance of the SDK's own `InvalidRequestState`, because its boundary
    logs the reason of that class only.

    * `malformed`: not the canonical text of a token in an accepted format.
    * `unknown key`: well-formed, but this process holds no key that may unseal the token now.
    * `seal`: authentication failed.
    """

    def __init__(self, reason: InvalidReason) -> None:
        super().__init__(reason)
        self.reason: InvalidReason = reason
        what = "authentication failed" if reason == "seal" else reason
        self.help = _section_on(f"InvalidRequestState: {what}")
        """URL of the documentation for this reason. For logs only, like the reason."""


def refused(reason: InvalidReason) -> InvalidRequestState:
    """The error for a refused token: of a class that is also the SDK's own if the SDK is loaded."""
    sdk = sys.modules.get("mcp.server.request_state")
    theirs = getattr(sdk, "InvalidRequestState", None)
    return InvalidRequestState(reason) if theirs is None else _for_sdk(theirs)(reason)


@lru_cache(maxsize=1)
def _for_sdk(theirs: type[Exception]) -> type[InvalidRequestState]:
    """A subclass of `InvalidRequestState` and of the SDK's class `theirs`; does not import the
    SDK."""
    members = {"__module__": __name__, "__doc__": InvalidRequestState.__doc__}
    return type("InvalidRequestState", (InvalidRequestState, theirs), members)


class SealUnavailableError(Exception):
    """No key may seal now, and no older key may be used instead. See `health()` for the cause."""

    def __init__(self, reason: SealUnavailableReason) -> None:
        super().__init__(f"cannot seal: {reason}")
        self.reason: SealUnavailableReason = reason
        self.help = _section_on(f"SealUnavailableError: {reason}")
        """URL of the documentation for this reason."""


class CodecClosedError(Exception):
    """The codec holds no keys: it was closed, not started yet, or started before a fork."""

    def __init__(self, detail: str = "the codec is closed") -> None:
        super().__init__(detail)
        self.help = _section_on("CodecClosedError")
        """URL of the documentation for this error."""


class KeyWrapperError(Exception):
    """The KMS refused the call, or the call failed. The vendor's error is never attached or quoted,
    because it can contain the data key.

    * `throttled`, `unavailable`: may succeed later.
    * `denied`: the caller may not use the key. `disabled`: no caller may. `not-found`: no such key.
    * `corrupt`: the wrapped key, its context or the service's answer failed a check.
    """

    def __init__(
        self,
        kind: KeyWrapperErrorKind,
        provider: str,
        *,
        operation: KeyWrapperOperation = "unwrap",
        code: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        attempts: int | None = None,
        hint: str | None = None,
        causes: "tuple[KeyWrapperError, ...]" = (),
    ) -> None:
        several = f"{attempts} attempts" if attempts not in (None, 1) else None
        facts = (
            code,
            status and f"HTTP {status}",
            request_id and f"request {request_id}",
            several,
            hint,
        )
        shown = ", ".join(fact for fact in facts if isinstance(fact, str))
        own = f"{provider} {operation}: {kind}{f' ({shown})' if shown else ''}"
        super().__init__("; ".join(map(str, causes)) or own)
        self.kind: KeyWrapperErrorKind = kind
        self.provider = provider
        self.operation: KeyWrapperOperation = operation
        self.code = code
        self.status = status
        self.request_id = request_id
        self.attempts = attempts
        """Attempts made, this one included; None if they were not counted."""
        self.hint = hint
        self.causes = causes
        """The error of each key wrapper, if several were called and all failed."""
        self.help = _section_on(f"KeyWrapperError: {kind}")
        """URL of the documentation for this kind of error."""


def attempted(error: KeyWrapperError, attempts: int) -> KeyWrapperError:
    """A copy of this error with the number of attempts."""
    return KeyWrapperError(
        error.kind,
        error.provider,
        operation=error.operation,
        code=error.code,
        status=error.status,
        request_id=error.request_id,
        attempts=attempts,
        hint=error.hint,
        causes=error.causes,
    )


def all_of(failures: Sequence[KeyWrapperError]) -> KeyWrapperError:
    """The failures of several key wrappers, as one error. It is a refusal only when every KMS
    refuses, because a KMS that cannot be reached may still allow the key."""
    if len(failures) == 1:
        return failures[0]
    kinds = get_args(KeyWrapperErrorKind)
    mildest = min(failures, key=lambda failure: kinds.index(failure.kind))
    providers = ", ".join(failure.provider for failure in failures)
    causes = tuple(failures)
    return KeyWrapperError(mildest.kind, providers, operation=failures[0].operation, causes=causes)


class RingStoreError(Exception):
    """The ring store failed, or holds no acceptable ring document. The text of the error is fixed,
    because a vendor's text can contain credentials.

    * `unavailable`: the call may succeed later. `denied`: this process lacks a permission.
      `read-only`: this store cannot be written to.
    * `absent`: a start found no ring. A store never raises this kind; its `read` returns None
      instead.
    * `corrupt`: the store holds no valid ring document. `too-large`: over a limit of the ring or
      of the store.
    """

    def __init__(
        self,
        kind: RingStoreErrorKind,
        detail: str,
        *,
        revision: str | None = None,
        code: str | None = None,
        location: str | None = None,
    ) -> None:
        where = "" if location is None else f"{location} "
        super().__init__(f"ring store {where}{kind}: {detail}")
        self.kind: RingStoreErrorKind = kind
        self.detail = detail
        self.code = code
        """The vendor's code, if it is one that the store lists."""
        self.location = location
        """The `location` of the store, if a start failed with this error."""
        self.help = _section_on(f"RingStoreError: {kind}")
        """URL of the documentation for this kind of error."""
        self.revision = revision
        """The revision of a stored document that is `corrupt` or `too-large`. A member that knows
        the ring needs it to overwrite that document."""


class SingleUseStoreError(Exception):
    """The store cannot determine whether a token was redeemed, so the token is refused. The kinds
    are the same as for RingStoreError. The text of the error is fixed and never comes from the
    vendor."""

    def __init__(self, kind: RingStoreErrorKind, detail: str, *, code: str | None = None) -> None:
        super().__init__(f"single-use store {kind}: {detail}")
        self.kind: RingStoreErrorKind = kind
        self.detail = detail
        self.code = code
        """The vendor's code, if it is one that the store lists."""
        self.help = _section_on(f"SingleUseStoreError: {kind}")
        """URL of the documentation for this kind of error."""

    @classmethod
    def like(cls, error: "RingStoreError") -> "SingleUseStoreError":
        """The error that a claim raises for the failure that a ring store reported as `error`."""
        return cls(error.kind, error.detail, code=error.code)


class SingleUseStoreFullError(Exception):
    """The store holds as many tokens as it is allowed to, and none of them has expired. The token
    is refused."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.help = _section_on("SingleUseStoreFullError")
        """URL of the documentation for this error."""


class RingConflictError(Exception):
    """Another writer was first; read the ring again."""

    def __init__(self) -> None:
        super().__init__("another writer changed the ring first: read it again")
        self.help = _section_on("RingConflictError")
        """URL of the documentation for this error."""


def may_pass(error: KeyWrapperError | RingStoreError) -> bool:
    return error.kind in ("throttled", "unavailable")
