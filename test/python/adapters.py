"""Key wrappers and ring stores of the Python package, by options in JSON. Each vendor's SDK is loaded only when it is needed:
eight processes start at once."""

import base64
import time

from sealring import (
    AwsKmsKeyWrapper,
    AzureBlobRing,
    AzureKeyVaultKeyWrapper,
    DynamodbRing,
    FileRing,
    GcpKmsKeyWrapper,
    GcsRing,
    LocalKeyWrapper,
    PostgresRing,
    RedisRing,
    S3Ring,
    VaultTransitKeyWrapper,
)


def client(service, endpoint, keys=("test", "test")):
    import boto3
    from botocore.config import Config

    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


class FixedCredential:
    def __init__(self, token):
        self.token = token

    def get_token(self, *scopes, **more):
        from azure.core.credentials import AccessToken

        return AccessToken(self.token, int(time.time()) + 3_600)


# Public keys are fetched once for each process, because later the policies may forbid it.
public_keys = {}


def azure_key_wrapper(options):
    from azure.keyvault.keys import KeyClient

    def clients(vault_url):
        return KeyClient(
            vault_url,
            FixedCredential(options["token"]),
            verify_challenge_resource=False,
            connection_verify=options["certificate"],
            retry_total=0,
            proxies={"https": options["proxy"]} if "proxy" in options else None,
        )

    sign_key_id = options["signKeyId"]
    if sign_key_id not in public_keys:
        fetched = AzureKeyVaultKeyWrapper.fetch_sign_public_keys([sign_key_id], clients=clients)
        public_keys[sign_key_id] = fetched
    return AzureKeyVaultKeyWrapper(
        key_id=options["keyId"],
        clients=clients,
        sign_key_id=sign_key_id,
        sign_public_keys=public_keys[sign_key_id],
    )


def gcp_key_wrapper(options):
    import grpc
    from google.cloud.kms import KeyManagementServiceClient
    from google.cloud.kms_v1.services.key_management_service.transports import KeyManagementServiceGrpcTransport

    channel = grpc.insecure_channel(options["address"])
    transport = KeyManagementServiceGrpcTransport(channel=channel)
    return GcpKmsKeyWrapper(key_id=options["keyId"], client=KeyManagementServiceClient(transport=transport))


def key_wrapper(options):
    if options.get("cloud") == "azure":
        return azure_key_wrapper(options)
    if options.get("cloud") == "gcp":
        return gcp_key_wrapper(options)
    if options.get("cloud") == "vault":
        return VaultTransitKeyWrapper(key_id=options["keyId"], address=options["address"], token=options["token"])
    if options.get("cloud") == "vault-client":
        import hvac

        own = hvac.Client(url=options["address"], token=options["token"])
        return VaultTransitKeyWrapper(key_id=options["keyId"], client=own)
    if "masterKey" in options:
        return LocalKeyWrapper(master_key=base64.b64decode(options["masterKey"]))
    keys = options.get("credentials", ("test", "test"))
    return AwsKmsKeyWrapper(
        key_id=options["keyId"], client=client("kms", options["endpoint"], keys)
    )


def cloud_ring(options):
    if options["store"] == "postgres":
        return PostgresRing(url=options["url"], name=options["name"], table=options.get("table", "sealring_ring"))
    if options["store"] == "dynamodb":
        return DynamodbRing(
            table=options["table"], name=options["name"], client=client("dynamodb", options["endpoint"])
        )
    if options["store"] == "gcs":
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        made = storage.Client(
            project="test",
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": options["endpoint"]},
        )
        return GcsRing(bucket=options["bucket"], object=options["name"], client=made)
    from azure.storage.blob import ContainerClient

    container = ContainerClient.from_container_url(options["container"], credential=options["key"], retry_total=0)
    return AzureBlobRing(client=container.get_blob_client(options["name"]))


def ring(options):
    if "store" in options:
        return cloud_ring(options)
    if "path" in options:
        return FileRing(options["path"])
    if "url" in options:
        return RedisRing(url=options["url"], key=options["key"])
    keys = options.get("credentials", ("test", "test"))
    return S3Ring(
        bucket=options["bucket"],
        key=options["key"],
        client=client("s3", options["endpoint"], keys),
    )
