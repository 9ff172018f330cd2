"""Sealring for Python: seals MCP `requestState` with data keys that a KMS wraps and a fleet shares.

The names here are public; everything else may change.
"""

from .clock import Clock
from .codec import KmsCodec, PurposeCodec
from .errors import (
    CodecClosedError,
    InvalidRequestState,
    KeyWrapperError,
    RingConflictError,
    RingStoreError,
    SealUnavailableError,
    SingleUseStoreError,
    SingleUseStoreFullError,
)
from .health import CodecHealth, KeyHealth, RingProblem
from .key_wrapper import DataKeyGenerator, EntrySigner, KeyWrapper, Supports, WrappedKey
from .ring.policy import RingPolicy
from .ring.store import ReadableRing, RingStore, StoredRing, WatchableRing
from .single_use.dynamodb import DynamodbSingleUse
from .single_use.guard import SingleUse
from .single_use.memory import MemorySingleUse
from .single_use.postgres import PostgresSingleUse
from .single_use.redis import RedisSingleUse
from .single_use.store import SingleUseStore
from .stores.azure_blob import AzureBlobRing
from .stores.dynamodb import DynamodbRing
from .stores.file import FileRing
from .stores.gcs import GcsRing
from .stores.postgres import PostgresRing
from .stores.redis import RedisRing
from .stores.s3 import S3Ring
from .wrappers.aws_kms import AwsKmsKeyWrapper
from .wrappers.azure_key_vault import AzureKeyVaultKeyWrapper
from .wrappers.gcp_kms import GcpKmsKeyWrapper
from .wrappers.local import LocalKeyWrapper
from .wrappers.vault_transit import VaultTransitKeyWrapper

__all__ = [
    "AwsKmsKeyWrapper",
    "AzureBlobRing",
    "AzureKeyVaultKeyWrapper",
    "Clock",
    "CodecClosedError",
    "CodecHealth",
    "DataKeyGenerator",
    "DynamodbRing",
    "DynamodbSingleUse",
    "EntrySigner",
    "FileRing",
    "GcpKmsKeyWrapper",
    "GcsRing",
    "InvalidRequestState",
    "KeyHealth",
    "KeyWrapper",
    "KeyWrapperError",
    "KmsCodec",
    "LocalKeyWrapper",
    "MemorySingleUse",
    "PostgresRing",
    "PostgresSingleUse",
    "PurposeCodec",
    "ReadableRing",
    "RedisRing",
    "RedisSingleUse",
    "RingConflictError",
    "RingPolicy",
    "RingProblem",
    "RingStore",
    "RingStoreError",
    "S3Ring",
    "SealUnavailableError",
    "SingleUse",
    "SingleUseStore",
    "SingleUseStoreError",
    "SingleUseStoreFullError",
    "StoredRing",
    "Supports",
    "VaultTransitKeyWrapper",
    "WatchableRing",
    "WrappedKey",
]
