"""The principals that FastMCP's verifiers and the MCP Python SDK give access tokens. Arguments: a public key, and the URL of an
introspection endpoint. A JSON array of access tokens on standard input; on standard output an array with a principal by verifier
for each token, which is null where it is refused."""

import asyncio
import json
import sys

from fastmcp.server.auth.providers.aws import AWSCognitoTokenVerifier
from fastmcp.server.auth.providers.introspection import IntrospectionTokenVerifier
from fastmcp.server.auth.providers.jwt import JWTVerifier
from mcp.server.auth.provider import principal_components
from mcp.server.request_state import compact_json

public_key, introspection_url = sys.argv[1:]
VERIFIERS = {
    "JWTVerifier": JWTVerifier(public_key=public_key),
    "AWSCognitoTokenVerifier": AWSCognitoTokenVerifier(public_key=public_key),
    "IntrospectionTokenVerifier": IntrospectionTokenVerifier(
        introspection_url=introspection_url, client_id="desk", client_secret="secret"
    ),
}


async def principal_of(verifier, token):
    access = await verifier.verify_token(token)
    return None if access is None else compact_json(principal_components(access))


async def principals_of(token):
    return {name: await principal_of(verifier, token) for name, verifier in VERIFIERS.items()}


async def main():
    print(json.dumps([await principals_of(token) for token in json.load(sys.stdin)]))


asyncio.run(main())
