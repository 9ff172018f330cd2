"""Runs flows of two rounds with the client of the MCP Python SDK, until a line arrives on standard input.

Arguments: the address, the user's name, the number of concurrent flows, and the least total. Prints one line of JSON
for each flow.
"""

import asyncio
import json
import sys

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

url, user, at_a_time, at_least = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
started = 0


async def accept(*_) -> ElicitResult:
    return ElicitResult(action="accept", content={"ok": True})


async def flows(stop: asyncio.Event) -> None:
    global started
    headers = {"authorization": f"Bearer {user}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, elicitation_callback=accept, mode="2026-07-28") as client:
            while not stop.is_set() or started < at_least:
                started += 1
                order = f"python {started}"
                try:
                    result = await client.call_tool("refund", {"order": order})
                    told = {"order": order, "text": result.content[0].text}
                except Exception as error:
                    told = {"order": order, "error": f"{type(error).__name__}: {error}"}
                print(json.dumps(told), flush=True)
                await asyncio.sleep(0.02)


async def main() -> None:
    stop = asyncio.Event()

    async def told_to_stop() -> None:
        await asyncio.to_thread(sys.stdin.readline)
        stop.set()

    await asyncio.gather(told_to_stop(), *(flows(stop) for _ in range(at_a_time)))


asyncio.run(main())
