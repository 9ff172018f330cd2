"""The KMS key a wrapper was configured with, in one of the spellings KMS takes (AWS KMS Developer
Guide, "Key identifiers (KeyId)")."""

import re
from typing import NamedTuple

_KEY_ID = "(?:mrk-[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_ALIAS = "alias/[A-Za-z0-9/_-]{1,250}"
_ARN = re.compile(
    "arn:(?P<partition>aws(?:-[a-z]+)*):kms:(?P<region>[a-z0-9-]{1,32}):"
    f"(?P<account>[0-9]{{12}}):(?:key/(?P<id>{_KEY_ID})|{_ALIAS})"
)
_BARE = re.compile(f"(?:(?P<id>{_KEY_ID})|{_ALIAS})")


class KeyName(NamedTuple):
    """A key's name, taken apart."""

    id: str | None
    """None for an alias."""
    region: str | None
    """None for what is no ARN."""
    scope: tuple[str, str] | None
    """Partition and account."""

    @property
    def is_key_arn(self) -> bool:
        return self.id is not None and self.scope is not None

    @property
    def is_multi_region(self) -> bool:
        """Every replica has its key id, and an ARN of its own."""
        return self.id is not None and self.id.startswith("mrk-")


def parse_key_name(text: str) -> KeyName | None:
    """None if the text is none of the four spellings."""
    arn = _ARN.fullmatch(text)
    if arn is not None:
        return KeyName(arn["id"], arn["region"], (arn["partition"], arn["account"]))
    bare = _BARE.fullmatch(text)
    return None if bare is None else KeyName(bare["id"], None, None)


def parse_key_arn(text: object) -> KeyName | None:
    """A full key ARN; None for anything else."""
    name = parse_key_name(text) if isinstance(text, str) else None
    return name if name is not None and name.is_key_arn else None


def may_mean(name: KeyName, arn: object, any_region: bool) -> bool:
    """Whether the key with ARN `arn` can be the one that `name` means. A key ARN decides it; a bare
    key id leaves account and region open; an alias leaves the key open, but an alias ARN not its
    region and account. With `any_region`, the regions of multi-Region keys are not compared."""
    key = parse_key_arn(arn)
    if key is None or (name.id is not None and name.id != key.id):
        return False
    if name.scope is None:
        return True
    is_same_region = name.region == key.region or (any_region and key.is_multi_region)
    return is_same_region and name.scope == key.scope
