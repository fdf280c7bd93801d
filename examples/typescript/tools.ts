// Three tools, one for each kind of thing that a person can be asked for.
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

import { elicit } from './sidegate.js';

const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] });

export function tools(): McpServer {
  const server = new McpServer({ name: 'sidegate-example', version: '1.0.0' });

  server.registerTool('forecast', { description: 'The weather in a city', inputSchema: z.object({ city: z.string() }) }, async (args, context) => {
    const { credential, reply } = await elicit(context, 'forecast', args, {
      kind: 'secret',
      message: 'Your WeatherCo API key is needed to look up the forecast.',
      summary: `Look up the weather in ${args.city}`,
      expiresIn: Number(process.env.EXAMPLE_EXPIRES_IN ?? 600),
      secret: { fields: [{ name: 'api_key', label: 'WeatherCo API key' }] },
    });
    return reply ?? text(await forecast(args.city, credential.values.api_key));
  });

  server.registerTool('list_repos', { description: 'Your repositories' }, async (context) => {
    const { credential, reply } = await elicit(context, 'list_repos', {}, {
      kind: 'oauth',
      message: 'Access to your repositories is needed to list them.',
      summary: 'List your repositories',
      oauth: { provider: process.env.EXAMPLE_PROVIDER ?? 'github', scopes: (process.env.EXAMPLE_SCOPES ?? 'repo').split(' ') },
    });
    return reply ?? text(await repositories(credential.accessToken));
  });

  server.registerTool('buy_report', { description: 'Buys a market report', inputSchema: z.object({ year: z.number().int() }) }, async (args, context) => {
    const { credential, reply } = await elicit(context, 'buy_report', args, {
      kind: 'payment',
      message: `The market report of ${args.year} costs $19.99.`,
      summary: `Buy the market report of ${args.year}`,
      payment: { provider: process.env.EXAMPLE_PROCESSOR ?? 'manual', amount: 1999, currency: 'usd', description: `Market report ${args.year}`, reference: `report-${args.year}` },
    });
    return reply ?? text(`The report of ${args.year} is yours: ${credential.payment.reference} is paid.`);
  });

  return server;
}

// What stands for the service behind each tool. The key and the token go there and nowhere else.
async function forecast(city: string, key: string): Promise<string> {
  return key ? `It is sunny in ${city}.` : 'WeatherCo refuses an empty key.';
}

async function repositories(token: string): Promise<string> {
  return token ? 'You have the repositories side and gate.' : 'The token is empty.';
}
