// Stripe's official SDK against the fake of Stripe: `node sdk.mjs`, which starts the fake itself, or `node sdk.mjs URL
// KEY` for one that runs, where nobody can pay. Prints one line of JSON; fails on any surprise.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import Stripe from 'stripe';

const secret = 'whsec_for_tests_alone';
let [, , url, key = 'sk_test_for_tests_alone'] = process.argv;
let command;
let stop = () => {};
const hooks = [];

if (!url) {
  const listener = createServer(async (req, res) => {
    const pieces = [];
    for await (const piece of req) pieces.push(piece);
    hooks.push({ body: Buffer.concat(pieces), signature: req.headers['stripe-signature'] });
    listener.emit('hook');
    res.end();
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const fake = spawn(process.execPath, [new URL('stripe.mjs', import.meta.url).pathname], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: fake.stdout })[Symbol.asyncIterator]();
  const line = async () => (await lines.next()).value;
  url = await line();
  command = async (said) => {
    fake.stdin.write(`${JSON.stringify(said)}\n`);
    const answer = JSON.parse(await line());
    assert.equal(answer.error, undefined);
    return answer;
  };
  const webhook = { url: `http://127.0.0.1:${listener.address().port}/`, secrets: ['whsec_of_old', secret] };
  await command({ secret_key: key, livemode: false, webhook });
  command.hook = async () => {
    while (hooks.length === 0) await once(listener, 'hook');
    return hooks.shift();
  };
  stop = () => {
    fake.stdin.end();
    listener.close();
    listener.closeAllConnections();
  };
}

const { hostname: host, port, protocol } = new URL(url);
const stripe = new Stripe(key, { host, port, protocol: protocol.slice(0, -1), maxNetworkRetries: 0, telemetry: false });
const params = {
  mode: 'payment',
  line_items: [{ quantity: 1, price_data: { currency: 'usd', unit_amount: 1999, product_data: { name: 'A report' } } }],
  client_reference_id: 'reference',
  metadata: { attempt: '1' },
  payment_intent_data: { metadata: { attempt: '1' } },
  adaptive_pricing: { enabled: false },
  success_url: 'https://shop.example/back?s={CHECKOUT_SESSION_ID}',
  cancel_url: 'https://shop.example/cancel',
  expires_at: Math.floor(Date.now() / 1000) + 3600,
};
const create = (idempotencyKey, more) => stripe.checkout.sessions.create({ ...params, ...more }, { idempotencyKey });
const run = `${process.pid}-${Date.now()}`;
const saw = {};

const first = await create(`${run}-1`);
assert.equal(first.amount_total, 1999);
assert.deepEqual([first.status, first.payment_status, first.livemode], ['open', 'unpaid', false]);
const again = await create(`${run}-1`);
assert.equal(again.id, first.id);
assert.equal(again.lastResponse.headers['idempotent-replayed'], 'true');
await assert.rejects(create(`${run}-1`, { expires_at: params.expires_at + 1 }), Stripe.errors.StripeIdempotencyError);
await assert.rejects(create(`${run}-2`, { colour: 'red' }), (error) => error.code === 'parameter_unknown');
const soon = create(`${run}-3`, { expires_at: params.expires_at - 3000 });
await assert.rejects(soon, (error) => error.param === 'expires_at');
assert.equal((await stripe.checkout.sessions.retrieve(first.id)).url, first.url);
await assert.rejects(stripe.checkout.sessions.retrieve('cs_test_none'), (error) => error.statusCode === 404);
const expired = await stripe.checkout.sessions.expire(first.id);
assert.equal(expired.status, 'expired');
await assert.rejects(stripe.checkout.sessions.expire(first.id), Stripe.errors.StripeInvalidRequestError);
saw.expired = expired.status;
const stranger = new Stripe('sk_test_wrong', { host, port, protocol: protocol.slice(0, -1), maxNetworkRetries: 0 });
await assert.rejects(stranger.checkout.sessions.retrieve(first.id), Stripe.errors.StripeAuthenticationError);

if (command) {
  const second = await create(`${run}-4`);
  await command({ pay: second.id, how: 'now' });
  const paid = await stripe.checkout.sessions.retrieve(second.id, { expand: ['payment_intent.latest_charge'] });
  assert.deepEqual([paid.status, paid.payment_status, paid.payment_intent.status], ['complete', 'paid', 'succeeded']);
  assert.equal(paid.payment_intent.latest_charge.refunded, false);
  const of = { payment_intent: paid.payment_intent.id };
  const refund = await stripe.refunds.create(of, { idempotencyKey: `${run}-5` });
  assert.deepEqual([refund.status, refund.amount], ['succeeded', 1999]);
  const twice = stripe.refunds.create(of);
  await assert.rejects(twice, (error) => error.code === 'charge_already_refunded');
  saw.paid = paid.payment_status;
  saw.refund = refund.status;
  saw.events = [];
  for (const type of ['checkout.session.expired', 'checkout.session.completed']) {
    const { body, signature } = await command.hook();
    const event = stripe.webhooks.constructEvent(body, signature, secret);
    assert.equal(event.type, type);
    assert.throws(() => stripe.webhooks.constructEvent(body, signature, 'whsec_of_another'));
    saw.events.push(event.type);
  }
  const { taken, refunded, refunds, payments } = await command({ money: true });
  assert.deepEqual([taken, refunded, refunds, payments], [{ usd: 1999 }, { usd: 1999 }, 1, 1]);
  saw.violations = (await command({ violations: true })).violations;
  // What we had refused on purpose.
  assert.deepEqual(saw.violations.map(({ message }) => message), ['colour: must NOT have additional properties']);
}
stop();
console.log(JSON.stringify(saw));
