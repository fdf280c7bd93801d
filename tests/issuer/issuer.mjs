// An OpenID Connect issuer on a free port of loopback: `node issuer.mjs`. Writes its URL; then reads one line of JSON,
// {"redirectUris": [...], "secret": "..."}, and serves until its input ends. Whoever signs in is who they say.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';

const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const url = `http://127.0.0.1:${server.address().port}`;
process.stdout.write(`${url}\n`);

const lines = createInterface({ input: process.stdin });
lines.once('line', (line) => {
  const { redirectUris, secret } = JSON.parse(line);
  const provider = new Provider(url, {
    clients: [
      {
        client_id: 'sidegate',
        client_secret: secret,
        redirect_uris: redirectUris,
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub'], email: ['email'], profile: ['name'] },
    conformIdTokenClaims: false,
    cookies: { keys: ['for tests alone'] },
    pkce: { required: () => true },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@people.example`, name: id }),
    }),
  });
  server.on('request', provider.callback());
  process.stdout.write('ready\n');
});
lines.once('close', () => process.exit(0));
