"""Single use on a server of the MCP Python SDK: a codec that gives each token an identifier, and a
middleware that claims it."""

import hashlib
import json
import logging
import os
import secrets
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, NamedTuple, Protocol

from .. import base64url
from ..errors import refused
from ..options import show, with_method
from .store import SingleUseStore

_OWNER = "SingleUse"
_ID_BYTES = 16
_TICKET_BYTES = 16
# The SDK's boundary accepts a token whose times are this far in the future, so the token can expire
# that much later.
_FUTURE_SKEW_SECONDS = 60
_LATEST = datetime.max.replace(tzinfo=timezone.utc).timestamp() - 1

logger = logging.getLogger("sealring")


class StateCodec(Protocol):
    """A `RequestStateCodec` of the MCP Python SDK."""

    def seal(self, payload: bytes) -> str: ...
    def unseal(self, token: str) -> bytes: ...


class _Opened(NamedTuple):
    """A token that was unsealed but has not been claimed yet."""

    ticket: str
    state: str
    id: object
    expires: object


class SingleUse:
    """Lets every `requestState` be redeemed at most once, as `singleUse` of @sealring/mcp does:
    servers in both languages can share the store, and each refuses tokens that the other has
    redeemed.

    An instance is both the codec of the request state security and a middleware of the server; a
    server needs both:

        single_use = SingleUse(codec, store=RedisSingleUse(url=url))
        MCPServer(
            name,
            request_state_security=RequestStateSecurity(codec=single_use),
            middleware=[single_use],
        )

    Sealing adds a random identifier to the claims of the boundary. The middleware runs inside the
    boundary, so a token is claimed only after all its claims have been verified, but before the
    handler runs. Without the middleware, a handler never gets the state. A claim is never released.

    Args:
        codec: the codec that seals and unseals: a KmsCodec, or a codec of the SDK.
        store: where redeemed tokens are kept. Its `clock_skew_seconds` must not be smaller than the
            codec's.

    A wrong argument raises TypeError or ValueError; the message names the argument.
    """

    def __init__(self, codec: StateCodec, *, store: SingleUseStore) -> None:
        with_method(_OWNER, "codec", codec, "seal")
        with_method(_OWNER, "codec", codec, "unseal")
        with_method(_OWNER, "store", store, "claim")
        _check_margin(store, codec)
        self._codec = codec
        self._store = store
        self._opened: ContextVar[_Opened | None] = ContextVar("sealring-single-use", default=None)

    def seal(self, payload: bytes) -> str:
        """Seals the claims of the boundary with a new identifier."""
        claims = bytes(payload)
        # The boundary writes a JSON object that is never empty and contains no spaces.
        if not claims.startswith(b"{") or not claims.endswith(b"}") or len(claims) < 3:
            raise ValueError(f"{_OWNER}: the payload is not the claims of the boundary")
        name = base64url.encode(os.urandom(_ID_BYTES))
        return self._codec.seal(claims[:-1] + f',"j":"{name}"}}'.encode("ascii"))

    def unseal(self, token: str) -> bytes:
        """The claims for the boundary, with a ticket in place of the state. Only the middleware
        exchanges the ticket for the state, after it has claimed the token."""
        self._opened.set(None)
        claims = _claims_of(self._codec.unseal(token))
        state = claims.get("s")
        if not isinstance(state, str):
            raise refused("malformed")
        ticket = secrets.token_urlsafe(_TICKET_BYTES)
        self._opened.set(_Opened(ticket, state, claims.get("j"), claims.get("exp")))
        return json.dumps({**claims, "s": ticket}).encode("ascii")

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """The middleware."""
        # Imported here because the server has loaded the module already, and the rest of this
        # package does not need it.
        from anyio.to_thread import run_sync  # noqa: PLC0415
        from mcp_types.methods import INPUT_REQUIRED_METHODS  # noqa: PLC0415

        params = ctx.params
        given = None if params is None else params.get("requestState")
        if ctx.method not in INPUT_REQUIRED_METHODS or given is None:
            return await call_next(ctx)
        opened = self._opened.get()
        self._opened.set(None)
        # A state that did not come through the boundary has no ticket.
        if opened is None or given != opened.ticket:
            raise _refusal(ctx.method, "unverified requestState")
        reason = await run_sync(self._claim, opened)
        if reason is not None:
            raise _refusal(ctx.method, reason)
        return await call_next(replace(ctx, params={**params, "requestState": opened.state}))

    def _claim(self, opened: _Opened) -> str | None:
        """Claims a token. Returns the reason why it is refused; None if it was claimed."""
        data = base64url.decode(opened.id) if isinstance(opened.id, str) else None
        # The token was sealed before single use was enabled, so two redemptions cannot be
        # distinguished.
        if data is None or len(data) != _ID_BYTES:
            return "malformed"
        if isinstance(opened.expires, bool) or not isinstance(opened.expires, (int, float)):
            return "malformed"
        end = min(opened.expires + _FUTURE_SKEW_SECONDS, _LATEST)
        until = datetime.fromtimestamp(end, tz=timezone.utc)
        digest = base64url.encode(hashlib.sha256(data).digest())
        try:
            won = self._store.claim(digest, until)
        except Exception as error:  # A custom store may raise anything.
            return f"already used ({type(error).__name__})"
        return None if won is True else "already used"


def _claims_of(payload: bytes) -> dict[str, object]:
    try:
        claims = json.loads(payload)
    except ValueError:
        claims = None
    if not isinstance(claims, dict):
        raise refused("malformed")
    return claims


def _refusal(method: str, reason: str) -> Exception:
    """The answer to a refused token, which is the same for every reason; the reason goes to the
    log."""
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415
    from mcp_types import INVALID_PARAMS  # noqa: PLC0415

    logger.warning("requestState rejected on %s: %s", method, reason)
    error: Exception = MCPError(
        code=INVALID_PARAMS,
        message="Invalid or expired requestState",
        data={"reason": "invalid_request_state"},
    )
    return error


def _check_margin(store: SingleUseStore, codec: object) -> None:
    """Checks that the margin of the store is at least the clock skew of the codec. With a smaller
    margin, a server whose clock is behind could redeem a token again."""
    margin: object = getattr(store, "clock_skew_seconds", None)
    skew = getattr(codec, "clock_skew_seconds", None)
    if margin is None:
        return
    if isinstance(margin, bool) or not isinstance(margin, (int, float)):
        raise TypeError(f"{_OWNER}: store.clock_skew_seconds must be a number, got {show(margin)}")
    if isinstance(skew, (int, float)) and not margin >= skew:
        raise ValueError(
            f"{_OWNER}: store.clock_skew_seconds {margin} must be at least {skew}, "
            "the clock_skew_seconds of the codec"
        )
