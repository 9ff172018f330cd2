"""A refund server on the low-level API of the MCP Python SDK, which protects no state. Arguments: port, `json` or `sse`."""

import sys

import uvicorn
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
)

port, response = int(sys.argv[1]), sys.argv[2]

QUESTION = ElicitRequest(
    params=ElicitRequestFormParams(
        message="Refund?",
        requested_schema={"type": "object", "properties": {"ok": {"type": "boolean"}}},
    )
)
REFUND = Tool(
    name="refund",
    input_schema={"type": "object", "properties": {"order": {"type": "string"}}},
)


async def list_tools(_context, _params) -> ListToolsResult:
    return ListToolsResult(tools=[REFUND])


async def call_tool(_context, params) -> CallToolResult | InputRequiredResult:
    if params.request_state is None:
        state = f"asked:{(params.arguments or {}).get('order')}"
        return InputRequiredResult(input_requests={"sure": QUESTION}, request_state=state)
    return CallToolResult(content=[TextContent(text=params.request_state)])


server = Server("desk", on_list_tools=list_tools, on_call_tool=call_tool)
app = server.streamable_http_app(json_response=response == "json")
uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")
