"""An MCP server that uses Sidegate: `python server.py` speaks over stdio, `python server.py --http PORT` over Streamable HTTP."""

import json
import os
import sys

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.request_state import RequestStateSecurity
from mcp_types import CallToolResult, TextContent

from sidegate import Reply, elicit

KNOWN = json.loads(os.environ.get("MCP_TOKENS", "{}"))
OVER_HTTP = "--http" in sys.argv


class Verifier:
    """Stands for the check of an access token that your server makes anyway: who has it, by issuer and subject. Here a list:
    MCP_TOKENS='{"token": {"iss": "https://idp.example", "sub": "ada"}}'."""

    async def verify_token(self, token: str) -> AccessToken | None:
        who = KNOWN.get(token)
        return who and AccessToken(token=token, client_id="example", scopes=[], subject=who["sub"], claims={"iss": who["iss"]})


# The SDK seals the request state with a key of its own. Several processes must share it.
keys = os.environ.get("MCP_STATE_KEYS", "").split()
server = MCPServer(
    "sidegate-example",
    version="1.0.0",
    token_verifier=Verifier() if OVER_HTTP else None,
    auth=AuthSettings(issuer_url="https://idp.example", resource_server_url=None) if OVER_HTTP else None,
    request_state_security=RequestStateSecurity(keys=keys) if keys else None,
)


@server.tool(description="The weather in a city")
async def forecast(city: str, ctx: Context) -> Reply:
    given, reply = await elicit(
        ctx, "forecast", {"city": city}, kind="secret",
        message="Your WeatherCo API key is needed to look up the forecast.",
        summary=f"Look up the weather in {city}",
        expiresIn=int(os.environ.get("EXAMPLE_EXPIRES_IN", "600")),
        secret={"fields": [{"name": "api_key", "label": "WeatherCo API key"}]},
    )
    return reply or said(weather(city, given["values"]["api_key"]))


@server.tool(description="Your repositories")
async def list_repos(ctx: Context) -> Reply:
    provider, scopes = os.environ.get("EXAMPLE_PROVIDER", "github"), os.environ.get("EXAMPLE_SCOPES", "repo").split()
    given, reply = await elicit(
        ctx, "list_repos", {}, kind="oauth",
        message="Access to your repositories is needed to list them.",
        summary="List your repositories",
        oauth={"provider": provider, "scopes": scopes},
    )
    return reply or said(repositories(given["accessToken"]))


@server.tool(description="Buys a market report")
async def buy_report(year: int, ctx: Context) -> Reply:
    report, reference = f"Market report {year}", f"report-{year}"
    given, reply = await elicit(
        ctx, "buy_report", {"year": year}, kind="payment",
        message=f"The market report of {year} costs $19.99.", summary=f"Buy the market report of {year}",
        payment={"provider": os.environ.get("EXAMPLE_PROCESSOR", "manual"), "amount": 1999, "currency": "usd", "description": report, "reference": reference},
    )
    return reply or said(f"The report of {year} is yours: {given['payment']['reference']} is paid.")


def said(words: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words)])


# What stands for the service behind each tool. The key and the token go there and nowhere else.
def weather(city: str, key: str) -> str:
    return f"It is sunny in {city}." if key else "WeatherCo refuses an empty key."


def repositories(token: str) -> str:
    return "You have the repositories side and gate." if token else "The token is empty."


if __name__ == "__main__":
    if OVER_HTTP:
        port = int(sys.argv[sys.argv.index("--http") + 1])
        server.run("streamable-http", host="127.0.0.1", port=port, stateless_http=True)
    else:
        server.run()
