// The example's server: `npm start` speaks over stdio, `npm start -- --http PORT` over Streamable HTTP. Both protocol versions.
import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler } from '@modelcontextprotocol/server';
import type { AuthInfo } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

import { tools } from './tools.js';

// Stands for the check of an access token that your server makes anyway: who has it, by issuer and subject. Here a list:
// MCP_TOKENS='{"token": {"iss": "https://idp.example", "sub": "ada"}}'.
const known: Record<string, { iss: string; sub: string }> = JSON.parse(process.env.MCP_TOKENS ?? '{}');

function verified(authorization = ''): AuthInfo | undefined {
  const token = authorization.replace(/^Bearer /i, '');
  const who = Object.hasOwn(known, token) ? known[token] : undefined;
  return who && { token, clientId: 'example', scopes: [], extra: who };
}

const at = process.argv.indexOf('--http');
if (at < 0) {
  serveStdio(tools);
} else {
  const handle = toNodeHandler(createMcpHandler(tools));
  const server = createServer((request, response) => {
    const auth = verified(request.headers.authorization);
    if (!auth) return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
    return handle(Object.assign(request, { auth }), response);
  });
  server.listen(Number(process.argv[at + 1] ?? 0), '127.0.0.1', () => {
    const { port } = server.address() as { port: number };
    console.error(`listening on http://127.0.0.1:${port}/mcp`);
  });
}
