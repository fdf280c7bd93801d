// An MCP server whose one tool asks Sidegate, and an MCP client whose user opens links and fills in forms, both of the
// official SDK: `node confirm.mjs INPUT`, JSON in and JSON out. The person has no account anywhere: the page shows a code
// and the client's form takes it.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { z } from 'zod';

const { base, key, wrong } = JSON.parse(process.argv[2]);

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: 'weather', version: '1.0.0' });
  server.registerTool('forecast', { inputSchema: z.object({ city: z.string() }) }, async (args, context) => {
    const response = await fetch(new URL('v1/rounds', base), {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        kind: 'secret',
        inputKey: 'weather_key',
        protocolVersion: '2026-07-28',
        clientCapabilities: { elicitation: { form: {}, url: {} } },
        subject: { issuer: 'local', id: 'ada' },
        operation: { name: 'tools/call:forecast', arguments: args, summary: 'Look up the weather in Oslo' },
        message: 'Your WeatherCo API key is needed.',
        secret: { fields: [{ name: 'api_key', label: 'WeatherCo API key' }] },
        requestState: context.mcpReq.requestState(),
        inputResponses: context.mcpReq.inputResponses,
      }),
    });
    const answer = await response.json();
    if (answer.outcome === 'completed') {
      return { content: [{ type: 'text', text: `sunny, by ${answer.credential.values.api_key}` }] };
    }
    const said = answer.result ?? answer.toolResult;
    if (!said) throw new Error(JSON.stringify(answer));
    return said;
  });
  return server;
});

const asked = [];
let showCode;
const shown = new Promise((resolve) => { showCode = resolve; });

/// The person at the browser: enters the key, and reads the code.
async function person(link) {
  const page = await (await fetch(link)).text();
  const value = (name) => page.match(new RegExp(`name="${name}" value="([^"]*)"`))[1];
  const form = new URLSearchParams({ _render: value('_render'), _token: value('_token'), api_key: 'wk-1' });
  const headers = { origin: new URL(link).origin };
  const done = await (await fetch(`${link}/secret`, { method: 'POST', headers, body: form })).text();
  showCode(done.match(/<output[^>]*>([^<]*)</)[1]);
}

const client = new Client(
  { name: 'desk', version: '1.0.0' },
  { capabilities: { elicitation: { form: {}, url: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
);
let tries = 0;
client.setRequestHandler('elicitation/create', async ({ params }) => {
  asked.push(params.mode ?? 'form');
  if (params.mode === 'url') {
    await person(params.url);
    return { action: 'accept' };
  }
  const code = await shown;
  tries += 1;
  const entered = tries <= wrong ? String((Number(code.replace(' ', '')) + 1) % 1e8).padStart(8, '0') : code;
  return { action: 'accept', content: { code: entered } };
});
const transport = new StreamableHTTPClientTransport(new URL('http://mcp.invalid/mcp'), {
  fetch: (url, init) => handler.fetch(new Request(url, init)),
});
await client.connect(transport);
const result = await client.callTool({ name: 'forecast', arguments: { city: 'Oslo' } });
process.stdout.write(JSON.stringify({ asked, result, version: transport.protocolVersion ?? null }));
await client.close();
process.exit(0);
