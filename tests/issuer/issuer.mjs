// An OpenID Connect issuer on a free port of loopback: `node issuer.mjs`. Writes its URL; then reads one line of JSON,
// {"redirectUris": [...], "secret": "..."}, and serves until its input ends. Whoever signs in is who they say.
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';
import { listen, people } from './shared.mjs';

const { server, url } = await listen();

const lines = createInterface({ input: process.stdin });
lines.once('line', (line) => {
  const { redirectUris, secret } = JSON.parse(line);
  const provider = new Provider(url, {
    ...people,
    clients: [
      {
        client_id: 'sidegate',
        client_secret: secret,
        redirect_uris: redirectUris,
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    pkce: { required: () => true },
  });
  server.on('request', provider.callback());
  process.stdout.write('ready\n');
});
lines.once('close', () => process.exit(0));
