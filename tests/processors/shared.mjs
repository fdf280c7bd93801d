// What both processors share: a free port of loopback, commands on stdin, faults, webhooks and the hosted page.
//
// Writes its URL; then reads lines of JSON and answers each in turn with one, until its input ends. The first line is
// the settings, and the answer to it {"ready": true}. Then commands; {"error": message} answers one that fails.
// ID is a session's at Stripe and an order's at PayPal:
//   {"pay": ID, "how": "now|later|fail"}        what a person does at the hosted page
//   {"finish": ID, "as": "succeeded|failed"}    how what was in flight ends
//   {"expire": ID}                              time is up
//   {"alter": ID, "with": {...}}                what is answered of it from now on; null removes
//   {"webhooks": {"url", "secrets", "mode": "send|hold|off"}}
//   {"events": true}                            [{"id", "type", "object": ID}]
//   {"deliver": EVENT, "times": 1, "at_once": true, "url", "secret", "age": seconds, "tamper": bool, "change": {...}}
//                                               {"statuses": [...]}, 0 where there was no answer
//   {"faults": {"POST /path/*": {"status", "drop", "delay": ms, "acts": bool, "times"}}}
//                                               in place of those before; without `times` for good. A delay is before
//                                               the request takes effect, and after it with `acts`
//   {"log": true}                               [{"method", "path", "key", "params", "status"}], null if cut off
//   {"orders": true} {"money": true} {"violations": true} {"reset": true}
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

// An event whose answer is not 2xx is sent again five times.
const tries = 6;
const pause = 200;

export class Processor {
  log = [];
  violations = [];
  events = [];
  orders = new Map();
  faults = [];
  money = { taken: {}, refunded: {}, refunds: 0, payments: 0 };

  constructor(url, { webhook }) {
    this.url = url;
    this.webhooks = { mode: 'send', ...webhook };
  }

  find(id) {
    const order = this.orders.get(id);
    if (!order) throw new Error(`there is no ${id}`);
    return order;
  }

  /// An amount in the minor unit. What was never taken is there as zero.
  count(what, currency, amount) {
    for (const each of ['taken', 'refunded']) this.money[each][currency] ??= 0;
    this.money[what][currency] += amount;
  }

  commands = {
    pay: ({ pay, how }) => this.pay(this.find(pay), how),
    finish: ({ finish, as }) => this.finish(this.find(finish), as),
    expire: ({ expire }) => this.expire(this.find(expire)),
    alter: ({ alter, with: changes }) => this.alter(this.find(alter), changes),
    webhooks: ({ webhooks }) => Object.assign(this.webhooks, webhooks),
    events: () => ({ events: this.events.map(({ id, type, object }) => ({ id, type, object })) }),
    deliver: (command) => this.deliver(command),
    faults: ({ faults }) => this.setFaults(faults),
    log: () => ({ log: this.log }),
    orders: () => ({ orders: [...this.orders.values()].map((order) => this.shown(order)) }),
    money: () => this.money,
    violations: () => ({ violations: this.violations }),
    reset: () => { this.log.length = 0; },
  };

  async command(line) {
    const command = JSON.parse(line);
    const name = Object.keys(this.commands).find((one) => one in command);
    if (!name) throw new Error(`no such command: ${line}`);
    const answered = await this.commands[name](command);
    return ['events', 'deliver', 'log', 'orders', 'money', 'violations'].includes(name) ? answered : { ok: true };
  }

  /// What is wrong with an answer goes to the violations.
  review() {}

  // Faults.

  setFaults(faults) {
    this.faults = Object.entries(faults).map(([pattern, fault]) => {
      const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
      return { at: new RegExp(`^${parts.join('.*')}$`), times: Infinity, ...fault };
    });
  }

  fault(method, path) {
    const fault = this.faults.find(({ at, times }) => times > 0 && at.test(`${method} ${path}`));
    if (!fault) return {};
    fault.times -= 1;
    return fault;
  }

  // Requests.

  async serve(req, res) {
    let raw = '';
    for await (const piece of req.setEncoding('utf8')) raw += piece;
    const { pathname: path, search } = new URL(req.url, this.url);
    if (path.startsWith('/pay/')) return this.hosted(req.method, path.slice('/pay/'.length), raw, res);
    const request = { method: req.method, path, search, headers: req.headers, raw };
    this.read(request);
    const { key = null, params } = request;
    const entry = { method: request.method, path, key, params: structuredClone(params), status: null };
    this.log.push(entry);
    const answer = await this.broken(request);
    if (!answer) return res.destroy();
    entry.status = answer.status;
    this.review(request, answer);
    res.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    return res.end(answer.body === undefined ? '' : JSON.stringify(answer.body));
  }

  /// The answer, as far as the faults let it be; nothing if the connection breaks.
  async broken(request) {
    const { status, drop, delay = 0, acts = false } = this.fault(request.method, request.path);
    if ((status || drop) && !acts) {
      await sleep(delay);
      return drop ? undefined : this.failure(status);
    }
    const answer = await this.once(request, async () => {
      if (delay && !acts) await sleep(delay);
      const made = await this.act(request);
      if (delay && acts) await sleep(delay);
      return status ? this.failure(status) : made;
    });
    if (drop) return undefined;
    return status ? this.failure(status) : answer;
  }

  // Webhooks.

  /// Sends it in the background, as the mode wills.
  happened(type, object, event) {
    this.events.push({ id: event.id, type, object, event });
    const { url, mode } = this.webhooks;
    if (mode === 'send' && url) this.send(event);
  }

  async send(event) {
    for (let n = 0; n < tries; n += 1) {
      if (n) await sleep(pause);
      const status = await this.post(event, {});
      if (status >= 200 && status < 300) return;
    }
  }

  async post(event, { url = this.webhooks.url, tamper, ...how }) {
    const body = JSON.stringify(event);
    const headers = { 'content-type': 'application/json', ...this.signed(body, how) };
    const sent = tamper ? tampered(body) : body;
    return fetch(url, { method: 'POST', headers, body: sent, redirect: 'manual' }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.status;
      },
      () => 0,
    );
  }

  async deliver({ deliver, times = 1, at_once: atOnce = true, change, ...how }) {
    const found = this.events.find(({ id }) => id === deliver);
    if (!found) throw new Error(`there is no ${deliver}`);
    if (!how.url && !this.webhooks.url) throw new Error('there is nowhere to deliver to');
    const event = { ...found.event, ...change };
    if (atOnce) return { statuses: await Promise.all(Array.from({ length: times }, () => this.post(event, how))) };
    const statuses = [];
    for (let n = 0; n < times; n += 1) statuses.push(await this.post(event, how));
    return { statuses };
  }

  // The hosted page.

  hosted(method, id, raw, res) {
    const order = this.orders.get(id);
    if (!order) return page(res, 404, '<h1>There is no such payment</h1>');
    const { title, amount, open, back, after } = this.offer(order);
    const offered = `<p>${escaped(title)}</p><p>${escaped(amount)}</p>`;
    const link = back ? `<p><a href="${escaped(back)}">Back to the shop</a></p>` : '';
    if (!open) return page(res, 200, `<h1>This payment is no longer open</h1>${offered}${link}`);
    let notice = '';
    if (method === 'POST') {
      const how = new URLSearchParams(raw).get('how');
      this.pay(order, how);
      if (how !== 'fail') return res.writeHead(303, { location: after }).end();
      notice = '<p role="alert">Your card was declined.</p>';
    }
    const form = (how, name) =>
      `<form method="post" action="/pay/${escaped(id)}"><input type="hidden" name="how" value="${how}">` +
      `<button>${name}</button></form>`;
    const forms = form('now', 'Pay now') + form('later', 'Pay by bank transfer') + form('fail', 'Use a refused card');
    return page(res, 200, `<h1>Pay</h1>${notice}${offered}${forms}${link}`);
  }
}

function page(res, status, body) {
  res.writeHead(status, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' });
  res.end(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Pay</title><body>${body}</body></html>`);
}

function escaped(text) {
  return String(text).replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);
}

/// Still JSON, and of another event.
function tampered(body) {
  return body.replace(/"id":"(.)/, (_, first) => `"id":"${first === 'x' ? 'y' : 'x'}`);
}

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
export function token(length, lower = false) {
  const text = [...randomBytes(length)].map((byte) => letters[byte % letters.length]).join('');
  return lower ? text.toLowerCase() : text;
}

export async function play(begin) {
  const server = createServer();
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${server.address().port}`;
  process.stdout.write(`${url}\n`);
  let processor;
  const answer = async (line) => {
    if (processor) return processor.command(line);
    processor = begin(url, JSON.parse(line));
    server.on('request', (req, res) => {
      processor.serve(req, res).catch((error) => {
        console.error(error);
        res.destroy();
      });
    });
    return { ready: true };
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const answered = await answer(line).catch(({ message }) => ({ error: message }));
    process.stdout.write(`${JSON.stringify(answered)}\n`);
  }
  process.exit(0);
}
