"""The name of the KMS key that a wrapper was configured with, in one of the forms that KMS accepts
(AWS KMS Developer Guide, "Key identifiers (KeyId)")."""

import re
from typing import NamedTuple

_KEY_ID = "(?P<id>mrk-[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_ALIAS = "alias/[A-Za-z0-9/_-]{1,250}"
_BARE = re.compile(f"{_KEY_ID}|{_ALIAS}")
_ARN = re.compile(
    "arn:(?P<partition>aws(?:-[a-z]+)*):kms:(?P<region>[a-z0-9-]{1,32}):"
    f"(?P<account>[0-9]{{12}}):(?:key/{_KEY_ID}|{_ALIAS})"
)


class KeyName(NamedTuple):
    """The parts of a key's name; None for each part that the name does not determine."""

    partition: str | None = None
    region: str | None = None
    account: str | None = None
    id: str | None = None
    """None for an alias."""

    @property
    def is_multi_region(self) -> bool:
        """Whether the name is of a multi-Region key, whose replicas share the key id but have
        separate ARNs."""
        return self.id is not None and self.id.startswith("mrk-")


def parse_key_name(text: str) -> KeyName | None:
    """Parses a key name; None if the text has none of the four forms."""
    found = _ARN.fullmatch(text) or _BARE.fullmatch(text)
    return found and KeyName(**found.groupdict())


def parse_key_arn(text: object) -> KeyName | None:
    """Parses a full key ARN; None for anything else."""
    name = parse_key_name(text) if isinstance(text, str) else None
    return None if name is None or None in name else name


def may_mean(name: KeyName, arn: object, any_region: bool) -> bool:
    """Whether `name` can mean the key with the ARN `arn`. If `name` is a key ARN, the answer is
    definite. A bare key id does not determine the account and the region. An alias does not
    determine the key, but an alias ARN determines its region and account. With `any_region`, the
    regions of multi-Region keys are not compared."""
    key = parse_key_arn(arn)
    if key is not None and any_region and key.is_multi_region:
        key = key._replace(region=name.region)
    return key is not None and all(
        mine in (None, theirs) for mine, theirs in zip(name, key, strict=True)
    )
