"""Parses URLs that can contain a password or a signature. No error of the parser is raised or
chained, because its message can contain a part of the URL."""

import re
from urllib.parse import SplitResult, urlsplit

_is_loopback = re.compile(r"localhost|127(?:\.[0-9]{1,3}){3}|::1", re.ASCII).fullmatch


def parsed_url(url: str) -> SplitResult | None:
    """The parts of a URL with a host. None if there is no host, or if the port is not a number from
    1 to 65535. Also None for an `@` after the host: the user or the password then contains a `/`,
    `?` or `#` that is not percent-encoded, and what looks like the host or the port is a part of
    them."""
    try:
        parts = urlsplit(url)
        # Parses the port.
        is_whole = parts.hostname is not None and parts.port != 0
    except ValueError:
        return None
    has_at_sign = any("@" in part for part in (parts.path, parts.query, parts.fragment))
    return parts if is_whole and not has_at_sign else None


def endpoint_url(url: str) -> SplitResult | None:
    """The parts of the address of a service: an `https://` URL, or an `http://` URL of this
    machine, without a user, password, query or fragment. None for any other text."""
    parts = parsed_url(url)
    if parts is None or parts.username is not None or parts.query or parts.fragment:
        return None
    is_local = parts.scheme == "http" and _is_loopback(str(parts.hostname)) is not None
    return parts if parts.scheme == "https" or is_local else None
