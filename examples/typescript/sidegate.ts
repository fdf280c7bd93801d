// Asks a person for what must not pass through the MCP client: one call a round. Copy this file.
import { CLIENT_CAPABILITIES_META_KEY, ProtocolError } from '@modelcontextprotocol/server';
import type { CallToolResult, InputRequiredResult, ServerContext } from '@modelcontextprotocol/server';

/** What is asked for; `message` and `summary` are what the person reads. */
export type Ask = { message: string; summary: string; expiresIn?: number } & (
  | { kind: 'secret'; secret: object }
  | { kind: 'oauth'; oauth: object }
  | { kind: 'payment'; payment: object }
);

/** What came of it: a credential, or what the handler is to return. */
export type Answer = { credential: any; reply?: never } | { credential?: never; reply: CallToolResult | InputRequiredResult };

const base = process.env.SIDEGATE_URL ?? 'http://127.0.0.1:8020';

export async function elicit(context: ServerContext, tool: string, args: unknown, { summary, ...ask }: Ask): Promise<Answer> {
  // Who it is, as the server has verified it. Over stdio whoever is at this computer.
  const who = context.http?.authInfo?.extra;
  const modern = context.mcpReq.envelope as Record<string, unknown> | undefined;
  const response = await fetch(new URL('v1/rounds', base.endsWith('/') ? base : `${base}/`), {
    method: 'POST',
    headers: { authorization: `Bearer ${process.env.SIDEGATE_KEY}`, 'content-type': 'application/json' },
    signal: context.mcpReq.signal,
    body: JSON.stringify({
      ...ask,
      operation: { name: `tools/call:${tool}`, arguments: args, summary },
      subject: who && { issuer: who.iss, id: who.sub },
      protocolVersion: modern ? '2026-07-28' : '2025-11-25',
      clientCapabilities: modern?.[CLIENT_CAPABILITIES_META_KEY],
      requestState: context.mcpReq.requestState(),
      inputResponses: context.mcpReq.inputResponses,
    }),
  });
  const answer = await response.json();
  if (answer.outcome === 'completed') return { credential: answer.credential };
  const error = answer.error ?? answer.mcpError;
  if (error) throw new ProtocolError(error.code, error.message, error.data);
  const reply = answer.result ?? answer.toolResult;
  if (!reply) throw new Error(`Sidegate answered ${response.status} ${answer.code}: ${answer.detail}`);
  return { reply };
}
