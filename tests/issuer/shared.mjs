// What both servers share: a free port of loopback, and people who are who they say.
import { createServer } from 'node:http';

/// Listens; the URL is the first line that is written.
export async function listen() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${server.address().port}`;
  process.stdout.write(`${url}\n`);
  return { server, url };
}

export const people = {
  claims: { openid: ['sub'], email: ['email'], profile: ['name'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['for tests alone'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@people.example`, name: id }),
  }),
};
