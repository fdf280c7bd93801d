"""Asks a person for what must not pass through the MCP client: one call a round. Copy this file."""

import os
from typing import Any

import httpx2
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, InputRequiredResult

Reply = CallToolResult | InputRequiredResult
URL = os.environ.get("SIDEGATE_URL", "http://127.0.0.1:8020").rstrip("/")
http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {os.environ.get('SIDEGATE_KEY', '')}"}, timeout=60)


async def elicit(
    ctx: Context, tool: str, args: dict[str, Any], *, summary: str, **ask: Any
) -> tuple[Any, Reply | None]:
    """What the person gave; or nothing, and what the handler is to return."""
    call = {**ask, "operation": {"name": f"tools/call:{tool}", "arguments": args, "summary": summary}}
    # Who it is, as the server has verified it. Over stdio whoever is at this computer.
    if token := get_access_token():
        call["subject"] = {"issuer": (token.claims or {}).get("iss"), "id": token.subject}
    call["protocolVersion"] = "2026-07-28" if ctx.protocol_version == "2026-07-28" else "2025-11-25"
    if ctx.client_capabilities:
        call["clientCapabilities"] = plain(ctx.client_capabilities)
    if ctx.request_state:
        call["requestState"] = ctx.request_state
    if ctx.input_responses:
        call["inputResponses"] = {key: plain(response) for key, response in ctx.input_responses.items()}
    response = await http.post(f"{URL}/v1/rounds", json=call)
    answer = response.json()
    if answer.get("outcome") == "completed":
        return answer["credential"], None
    if error := answer.get("error") or answer.get("mcpError"):
        raise MCPError(error["code"], error["message"], error.get("data"))
    if "result" in answer:
        return None, InputRequiredResult.model_validate(answer["result"])
    if "toolResult" in answer:
        return None, CallToolResult.model_validate(answer["toolResult"])
    raise RuntimeError(f"Sidegate answered {response.status_code} {answer.get('code')}: {answer.get('detail')}")


def plain(model: Any) -> Any:
    return model.model_dump(by_alias=True, exclude_none=True, mode="json")
