// An MCP client of the official SDK, whose user is the test: `node client.mjs INPUT`. It calls one tool once, as a host would, and
// writes a line of JSON for each thing that happens; after {"asked"} it reads one: {"action": "accept|decline|cancel"}.
//   {"urls": [first, later], "tokens": [first, later]} or {"command", "args", "env"}   the server
//   {"era": "2026-07-28" | "2025-11-25", "capabilities", "tool", "arguments"}
//   {"tamper": true}           the request state comes back changed
//   {"transcript": FILE}       everything that goes over the wire
// -> {"asked": {"url", "message", "id"}}, then {"result"} or {"error": {"code", "message"}}
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const input = JSON.parse(process.argv[2]);
const modern = input.era === '2026-07-28';
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

async function ask({ url, message, elicitationId: id }) {
  say({ asked: { url, message, id } });
  return JSON.parse((await lines.next()).value);
}

let calls = 0;
function transport() {
  if (!input.urls) return new StdioClientTransport({ command: input.command, args: input.args, env: { ...process.env, ...input.env }, cwd: input.cwd });
  // A retry may come to another instance, or from another user.
  const now = ([first, later = first]) => (calls > 1 ? later : first);
  return new StreamableHTTPClientTransport(new URL(input.urls[0]), {
    fetch: (_, init) => {
      const headers = new Headers(init?.headers);
      headers.set('authorization', `Bearer ${now(input.tokens)}`);
      return fetch(now(input.urls), { ...init, headers });
    },
  });
}

/// Everything that passes, and what is changed on its way.
function watched(inner) {
  const send = inner.send.bind(inner);
  inner.send = (message, ...rest) => {
    const all = Array.isArray(message) ? message : [message];
    for (const one of all) {
      if (one.method === 'tools/call') calls += 1;
      const state = one.params?.requestState;
      if (input.tamper && state) one.params.requestState = state.slice(0, -2) + (state.endsWith('AA') ? 'BB' : 'AA');
    }
    if (input.transcript) appendFileSync(input.transcript, `> ${JSON.stringify(message)}\n`);
    return send(message, ...rest);
  };
  let receive;
  Object.defineProperty(inner, 'onmessage', {
    get: () => receive,
    set: (handler) => {
      receive = handler && ((message, ...rest) => {
        if (input.transcript) appendFileSync(input.transcript, `< ${JSON.stringify(message)}\n`);
        return handler(message, ...rest);
      });
    },
  });
  return inner;
}

const client = new Client(
  { name: 'desk', version: '1.0.0' },
  {
    capabilities: input.capabilities ?? { elicitation: { form: {}, url: {} } },
    versionNegotiation: { mode: modern ? { pin: '2026-07-28' } : 'legacy' },
  },
);
if (!input.capabilities || input.capabilities.elicitation) {
  client.setRequestHandler('elicitation/create', ({ params }) => ask(params));
}
await client.connect(watched(transport()));
const call = () => client.callTool({ name: input.tool, arguments: input.arguments });

// In the earlier version the host opens the link of the error, and calls again once its user says so.
async function patiently() {
  const known = new Set();
  for (let tries = 0; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      const asked = error.code === -32042 ? error.data.elicitations : undefined;
      if (!asked || tries >= 8) throw error;
      for (const one of asked.filter(({ elicitationId }) => !known.has(elicitationId))) {
        known.add(one.elicitationId);
        const { action } = await ask(one);
        if (action !== 'accept') return { stopped: action };
      }
    }
  }
}

try {
  say({ result: await (modern ? call() : patiently()) });
} catch (error) {
  if (!ProtocolError.isInstance(error)) console.error(error);
  say({ error: { code: error.code ?? null, message: error.message } });
}
await client.close();
process.exit(0);
