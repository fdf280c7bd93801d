// An OAuth authorization server on a free port of loopback: `node authority.mjs`. Writes its URL; then reads lines of
// JSON and answers each in turn with one, until its input ends. The first line is the settings, and the answer to it
// {"ready": true}; what is left out is off, but for `pkce` and `iss`:
//   {"clients": [metadata...], "pkce": required?, "par": "off|on|required", "iss": in answers?, "jarm": bool,
//    "dpop": "off|on|required", "revocation": bool, "introspection": bool, "rotation": bool, "alwaysRefresh": bool,
//    "accessTokenTtl": seconds, "scopes": [more...], "resourceIndicators": bool}
// Then commands; {"error": message} answers one that fails:
//   {"approve": url, "as": name, "jar": name, "deny": bool}  {"to": url} or {"post": url, "form": {...}}
//   {"log": true}                                            {"log": [...]}
//   {"introspect": token}                                    {"active": bool, "scope": ...}
// Whoever signs in is who they say.
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';
import { listen, people } from './shared.mjs';

// The library's notices would mix with the answers.
console.info = console.error;

const { server, url: origin } = await listen();
const log = [];
const jars = new Map();
let provider;

async function start(settings) {
  const { pkce = true, iss = true, par = 'off', dpop = 'off', scopes = [] } = settings;
  const each = dpop === 'required' && { dpop_bound_access_tokens: true };
  const clients = settings.clients.map((client) => ({ ...client, ...each }));
  const begun = new Provider(origin, {
    ...people,
    clients,
    scopes: ['openid', 'offline_access', ...scopes],
    pkce: { required: () => pkce },
    features: {
      dPoP: { enabled: dpop !== 'off' },
      introspection: { enabled: !!settings.introspection },
      jwtResponseModes: { enabled: !!settings.jarm },
      pushedAuthorizationRequests: { enabled: par !== 'off', requirePushedAuthorizationRequests: par === 'required' },
      resourceIndicators: {
        enabled: !!settings.resourceIndicators,
        getResourceServerInfo: () => ({ scope: scopes.join(' '), accessTokenFormat: 'opaque' }),
        useGrantedResource: () => true,
      },
      revocation: { enabled: !!settings.revocation },
    },
    // What a token may do does not end with the person's session.
    expiresWithSession: () => false,
    issueRefreshToken: (_, client, source) =>
      client.grantTypeAllowed('refresh_token') && (!!settings.alwaysRefresh || source.scopes.has('offline_access')),
    // A refresh token that is used twice ends its grant.
    rotateRefreshToken: !!settings.rotation,
    ttl: { AccessToken: settings.accessTokenTtl ?? 3600 },
    renderError: (ctx, out) => { ctx.body = out; },
  });
  // A client that is not valid fails here rather than at its first request.
  for (const { client_id: id } of clients) await begun.Client.find(id);
  begun.on('interaction.started', (ctx, prompt) => { ctx.state.prompt = prompt; });
  for (const at of ['authorization', 'pushed_authorization_request', 'grant', 'revocation', 'introspection']) {
    begun.on(`${at}.error`, (ctx, { error, error_detail: why }) => { ctx.state.failed = { error, why }; });
  }
  begun.use(record);
  if (!iss) begun.use(withoutIss);
  server.on('request', begun.callback());
  provider = begun;
  return { ready: true };
}

/// Writes down what was asked of an endpoint, once it is answered.
async function record(ctx, next) {
  await next();
  if (!ctx.oidc) return;
  const { route, body = {} } = ctx.oidc;
  const said = { ok: ctx.status < 400, error: ctx.body?.error, ...ctx.state.failed };
  const told = { ...said, client: ctx.oidc.client?.clientId, auth: authentication(ctx, body), dpop: !!ctx.get('dpop') };
  const about = { hint: body.token_type_hint, token: body.token };
  const entries = {
    authorization: () => ({ at: 'authorization', ...ctx.state.failed, parameters: { ...ctx.query } }),
    discovery: () => ({ at: 'metadata', path: ctx.path }),
    introspection: () => ({ at: 'introspection', ...about, ...told }),
    jwks: () => ({ at: 'jwks' }),
    pushed_authorization_request: () => ({ at: 'par', ...told, parameters: { ...body } }),
    revocation: () => ({ at: 'revocation', ...about, ...told }),
    token: () => ({
      at: 'token',
      grant: body.grant_type,
      ...told,
      hasVerifier: 'code_verifier' in body,
      scope: body.scope,
      resource: body.resource,
    }),
    userinfo: () => ({ at: 'userinfo', ...said, dpop: told.dpop }),
  };
  const entry = entries[route]?.();
  if (entry) log.push(entry);
  const { prompt } = ctx.state;
  if (prompt) {
    const { missingOIDCScope: scopes, missingResourceScopes: resources } = prompt.details;
    log.push({ at: 'prompt', name: prompt.name, reasons: prompt.reasons, scopes, resources });
  }
}

function authentication(ctx, body) {
  if (/^basic /i.test(ctx.get('authorization'))) return 'client_secret_basic';
  if (body.client_assertion) {
    const [header] = String(body.client_assertion).split('.');
    return /"HS\d+"/.test(Buffer.from(header, 'base64url')) ? 'client_secret_jwt' : 'private_key_jwt';
  }
  return body.client_secret ? 'client_secret_post' : 'none';
}

/// The library always names itself in an answer, and says that it does. A JWT names its issuer all the same.
async function withoutIss(ctx, next) {
  await next();
  const { route } = ctx.oidc ?? {};
  if (route === 'discovery') delete ctx.body.authorization_response_iss_parameter_supported;
  if (route !== 'authorization' && route !== 'resume') return;
  const to = ctx.response.get('location');
  if (to) ctx.redirect(to.replace(/([?&#])iss=[^&#]*(&|(?=#|$))/, (_, before, after) => (after ? before : '')));
  else if (typeof ctx.body === 'string') ctx.body = ctx.body.replace(/<input type="hidden" name="iss" [^>]*>/, '');
}

/// A person without a browser: signs in and consents, until they are led elsewhere.
async function approve({ approve: start, as, deny, jar = '' }) {
  if (!jars.has(jar)) jars.set(jar, new Map());
  const cookies = jars.get(jar);
  let url = new URL(start);
  if (url.origin !== origin) throw new Error(`${url.origin} is another server`);
  let body;
  for (let steps = 0; steps < 20; steps += 1) {
    const headers = { accept: 'text/html', cookie: sent(cookies, url) };
    const response = await fetch(url, { method: body ? 'POST' : 'GET', body, headers, redirect: 'manual' });
    keep(cookies, response);
    body = undefined;
    const to = response.headers.get('location');
    const page = await response.text();
    if (to) {
      url = new URL(to, url);
      if (url.origin !== origin) return { to };
      continue;
    }
    const form = page.match(/<form\b([^>]*)>(.*?)<\/form>/s);
    if (!form) throw new Error(`${response.status} ${page}`);
    const action = attribute(form[1], 'action');
    const inputs = form[2].match(/<input\b[^>]*>/g).filter((input) => attribute(input, 'type') === 'hidden');
    const fields = Object.fromEntries(inputs.map((input) => [attribute(input, 'name'), attribute(input, 'value')]));
    if (new URL(action, url).origin !== origin) return { post: action, form: fields };
    if (deny && fields.prompt === 'consent') {
      url = new URL(attribute(page.match(/<a\b[^>]*>\[ Cancel \]/)[0], 'href'), url);
      continue;
    }
    if (fields.prompt === 'login') Object.assign(fields, { login: as, password: 'x' });
    url = new URL(action, url);
    body = new URLSearchParams(fields);
  }
  throw new Error('led around in circles');
}

function attribute(tag, name) {
  const entities = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  const value = tag.match(new RegExp(`\\s${name}="([^"]*)"`))?.[1];
  return value?.replace(/&(amp|lt|gt|quot|#39);/g, (_, entity) => entities[entity]);
}

function keep(cookies, response) {
  for (const line of response.headers.getSetCookie()) {
    const [pair, ...rest] = line.split(/; */);
    const [name, value] = pair.split(/=(.*)/s);
    const told = Object.fromEntries(rest.map((attribute) => attribute.split('=')));
    cookies.set(`${name} ${told.path}`, { name, value, path: told.path, until: Date.parse(told.expires) });
  }
}

function sent(cookies, { pathname }) {
  const here = ({ path, until }) => pathname.startsWith(path) && !(until <= Date.now());
  return [...cookies.values()].filter(here).map(({ name, value }) => `${name}=${value}`).join('; ');
}

async function introspect(value) {
  const token = (await provider.AccessToken.find(value)) ?? (await provider.RefreshToken.find(value));
  if (!token?.isValid || !(await provider.Grant.find(token.grantId))) return { active: false };
  return { active: true, kind: token.kind, scope: token.scope, sub: token.accountId, aud: token.aud, jkt: token.jkt };
}

async function answer(line) {
  const command = JSON.parse(line);
  if (!provider) return start(command);
  if (command.approve) return approve(command);
  if (command.log) return { log };
  if (command.introspect) return introspect(command.introspect);
  throw new Error(`no such command: ${line}`);
}

for await (const line of createInterface({ input: process.stdin })) {
  const answered = await answer(line).catch(({ message, error_description: why }) => ({ error: why ?? message }));
  process.stdout.write(`${JSON.stringify(answered)}\n`);
}
process.exit(0);
