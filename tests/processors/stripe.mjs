// Stripe Checkout on a free port of loopback: `node stripe.mjs`. What it reads and answers is in shared.mjs; settings:
//   {"secret_key": "sk_test_...", "livemode": bool, "webhook": {"url", "secrets": ["whsec_..."]} or null}
// Every request and answer is held against Stripe's OpenAPI document: a request that does not fit is refused as Stripe
// would, and either is found among the violations. Events are signed by Stripe's own SDK.
import Stripe from 'stripe';
import { badAnswer, badObject, badRequest, expandable, operation, version } from './openapi.mjs';
import { play, Processor, token } from './shared.mjs';

const minute = 60;
const day = 24 * 60 * minute;
const noDecimals = 'bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' ');
const threeDecimals = 'bhd jod kwd omr tnd'.split(' ');
// Sent times a hundred though they have no decimals.
const wholeOnly = ['isk', 'ugx'];
const currencies = new Set(Intl.supportedValuesOf('currency').map((code) => code.toLowerCase()));
const smallest = { eur: 50, gbp: 30, jpy: 50, usd: 50 };

const now = () => Math.floor(Date.now() / 1000);

/// `param` is what Stripe names as the culprit.
function refusal(status, message, { type = 'invalid_request_error', ...more } = {}) {
  const told = more.code && { doc_url: `https://stripe.com/docs/error-codes/${more.code.replaceAll('_', '-')}` };
  return { status, body: { error: { message, type, ...told, ...more } } };
}

/// `a[b][0][c]=d` as {a: {b: [{c: 'd'}]}}.
function nested(form) {
  const root = {};
  for (const [name, value] of form) {
    const keys = [name.split('[')[0], ...[...name.matchAll(/\[([^\]]*)\]/g)].map(([, key]) => key)];
    const last = keys.pop();
    const place = (at, key) => (key === '' ? Object.keys(at).length : key);
    const at = keys.reduce((outer, key) => (outer[place(outer, key)] ??= {}), root);
    at[place(at, last)] = value;
  }
  const listed = (value) => {
    if (typeof value !== 'object') return value;
    const pairs = Object.entries(value).map(([key, one]) => [key, listed(one)]);
    const list = pairs.length > 0 && pairs.every(([key], i) => key === String(i));
    return list ? pairs.map(([, one]) => one) : Object.fromEntries(pairs);
  };
  return Object.fromEntries(Object.entries(root).map(([key, value]) => [key, listed(value)]));
}

class StripeCheckout extends Processor {
  /// By idempotency key; without an answer as long as the first request is under way.
  keys = new Map();
  refunds = new Map();

  constructor(url, settings) {
    super(url, settings);
    this.secretKey = settings.secret_key;
    this.livemode = settings.livemode ?? false;
  }

  id(prefix) {
    return `${prefix}_${token(24, true)}`;
  }

  // Requests.

  read(request) {
    request.key = request.headers['idempotency-key'];
    request.form = nested(new URLSearchParams(request.raw));
    request.query = nested(new URLSearchParams(request.search));
    request.params = { ...request.query, ...request.form };
    request.template = operation(request.method, request.path);
  }

  failure(status) {
    if (status === 401) return refusal(401, 'Invalid API Key provided');
    if (status === 429) return refusal(429, 'Too many requests hit the API too quickly.', { code: 'rate_limit' });
    const type = status >= 500 ? 'api_error' : 'invalid_request_error';
    return refusal(status, 'An error occurred as the test wished.', { type });
  }

  /// The first answer to a key is the answer for good, be it an error; but what is refused before it takes effect is
  /// not kept.
  async once(request, run) {
    const { key, method, path, headers } = request;
    const given = /^Bearer (.*)$/.exec(headers.authorization ?? '')?.[1];
    if (!given) return refusal(401, 'You did not provide an API key.');
    if (given !== this.secretKey) return refusal(401, `Invalid API Key provided: ${given.slice(0, 8)}****`);
    if (!request.template) {
      this.violate(request, 'no such operation');
      return refusal(404, `Unrecognized request URL (${method}: ${path}).`);
    }
    if (method !== 'POST' || !key) return this.invalid(request) ?? run();
    if (key.length > 255) {
      this.violate(request, 'Idempotency-Key: must NOT have more than 255 characters');
      return refusal(400, 'Idempotency keys can be at most 255 characters.', { type: 'idempotency_error' });
    }
    const print = JSON.stringify([path, request.params]);
    const known = this.keys.get(key);
    if (known && known.print !== print) {
      const only = 'Keys for idempotent requests can only be used with the same parameters they were first used with.';
      const rest = `Try using a key other than '${key}' if you meant to execute a different request.`;
      return refusal(400, `${only} ${rest}`, { type: 'idempotency_error' });
    }
    if (known && !known.answer) {
      const message = `There is currently another in-progress request using this Idempotency-Key: ${key}.`;
      return refusal(409, message, { code: 'idempotency_key_in_use', type: 'idempotency_error' });
    }
    if (known) return { ...known.answer, headers: { 'idempotent-replayed': 'true' } };
    const refused = this.invalid(request);
    if (refused) return refused;
    const first = { print };
    this.keys.set(key, first);
    first.answer = structuredClone(await run());
    return first.answer;
  }

  violate({ method, path }, message) {
    this.violations.push({ request: `${method} ${path}`, message });
  }

  /// Whatever the document does not allow, and then what Stripe does not allow besides.
  invalid(request) {
    const { method, template, headers, form, query } = request;
    const type = headers['content-type'] ?? '';
    if (request.raw && !type.startsWith('application/x-www-form-urlencoded')) {
      this.violate(request, `content-type: ${type}`);
      return refusal(400, 'Invalid request body: it must be form-encoded.');
    }
    const [wrong, ...more] = badRequest(method, template, query, form);
    for (const { message } of wrong ? [wrong, ...more] : []) this.violate(request, message);
    if (wrong) {
      const [first, ...rest] = wrong.at;
      const param = [first, ...rest.map((part) => `[${part}]`)].join('');
      if (wrong.keyword === 'additionalProperties') {
        return refusal(400, `Received unknown parameter: ${param}`, { code: 'parameter_unknown', param });
      }
      if (wrong.keyword === 'required') {
        return refusal(400, `Missing required param: ${param}.`, { code: 'parameter_missing', param });
      }
      return refusal(400, `Invalid ${param}: ${wrong.message}`, { param });
    }
    const wanted = [...(query.expand ?? []), ...(form.expand ?? [])];
    const odd = wanted.find((path) => !path.split('.').every((name) => expandable.includes(name)));
    if (odd) return refusal(400, `This property cannot be expanded (${odd}).`, { param: 'expand' });
    return template === '/v1/checkout/sessions' && method === 'POST' ? this.unsound(form) : undefined;
  }

  unsound({ mode, line_items: lines = [], success_url: success, cancel_url: cancel, ...form }) {
    const missing = (param) => refusal(400, `Missing required param: ${param}.`, { code: 'parameter_missing', param });
    const bad = (param, message, code) => refusal(400, message, { param, ...(code && { code }) });
    if (mode !== 'payment') return mode ? bad('mode', 'This fake knows no mode but payment.') : missing('mode');
    if (lines.length === 0) return missing('line_items');
    if (!success) return missing('success_url');
    for (const [param, url] of Object.entries({ success_url: success, cancel_url: cancel })) {
      if (url !== undefined && !/^https?:\/\/\S+$/.test(url)) return bad(param, 'Not a valid URL', 'url_invalid');
    }
    for (const [i, { quantity, price_data: price }] of lines.entries()) {
      const param = `line_items[${i}]`;
      if (!(quantity > 0)) return bad(`${param}[quantity]`, 'Quantity must be at least 1.');
      if (!price) return missing(`${param}[price_data]`);
      const { currency, unit_amount: amount, product_data: product } = price;
      const at = `${param}[price_data]`;
      if (!currencies.has(currency.toLowerCase())) return bad(`${at}[currency]`, `Invalid currency: ${currency}`);
      if (currency.toLowerCase() !== lines[0].price_data.currency.toLowerCase()) {
        return bad(`${at}[currency]`, 'All prices must have the same currency.');
      }
      if (amount === undefined) return missing(`${at}[unit_amount]`);
      if (amount < 0) return bad(`${at}[unit_amount]`, 'Invalid non-negative integer', 'parameter_invalid_integer');
      if (!product?.name) return missing(`${at}[product_data][name]`);
    }
    const { currency, amount } = total(lines);
    const step = threeDecimals.includes(currency) ? 10 : wholeOnly.includes(currency) ? 100 : 1;
    if (amount % step) return bad('line_items', `Amounts in ${currency} must be divisible by ${step}.`);
    if (amount > 99999999) return bad('line_items', 'The total amount is too large.', 'amount_too_large');
    if (amount < (smallest[currency] ?? 1)) return bad('line_items', 'The total is too small.', 'amount_too_small');
    for (const [param, metadata = {}] of [
      ['metadata', form.metadata],
      ['payment_intent_data[metadata]', form.payment_intent_data?.metadata],
    ]) {
      const pairs = Object.entries(metadata);
      if (pairs.length > 50) return bad(param, 'Metadata can have up to 50 keys.');
      const long = pairs.find(([key, value]) => key.length > 40 || value.length > 500);
      if (long) return bad(`${param}[${long[0]}]`, 'Metadata keys have up to 40 characters, values up to 500.');
    }
    if (form.expires_at === undefined) return undefined;
    const life = form.expires_at - now();
    const limit = life < 30 * minute ? 'at least 30 minutes' : life > day ? 'less than 24 hours' : undefined;
    return limit && bad('expires_at', `The \`expires_at\` timestamp must be ${limit} from Checkout Session creation.`);
  }

  act(request) {
    const { method, template, path, form, params } = request;
    const id = path.split('/')[template.split('/').findIndex((part) => part.startsWith('{'))];
    const routes = {
      'POST /v1/checkout/sessions': () => this.view(this.open(form), params.expand),
      'GET /v1/checkout/sessions/{session}': () => this.view(this.session(id), params.expand),
      'POST /v1/checkout/sessions/{session}/expire': () => this.close(this.session(id), params.expand),
      'GET /v1/payment_intents/{intent}': () => this.intentView(this.byIntent(id, 404, 'intent'), params.expand),
      'GET /v1/charges/{charge}': () => this.byCharge(id).charge,
      'POST /v1/refunds': () => this.refund(form, params.expand),
      'GET /v1/refunds/{refund}': () => this.refunds.get(id) ?? absent('refund', id, 404, 'refund'),
      'GET /v1/account': () => ({ id: 'acct_1sidegatetest', object: 'account' }),
      'GET /v1/balance': () => this.balance(),
    };
    const route = routes[`${method} ${template}`];
    if (!route) return refusal(404, `This fake has no ${method} ${template}.`);
    try {
      return { status: 200, body: structuredClone(route()) };
    } catch (error) {
      if (error.status) return error;
      throw error;
    }
  }

  review(request, { status, body }) {
    const { method, path, template, params } = request;
    // What a test alters need not be an answer of Stripe's.
    if (!template || this.orders.get(body.id)?.altered) return;
    for (const { message } of badAnswer(method, template, status, body, { expanded: !!params.expand })) {
      this.violations.push({ answer: `${status} ${method} ${path}`, message });
    }
  }

  // Sessions.

  session(id) {
    return this.orders.get(id) ?? absent('checkout.session', id, 404, 'session');
  }

  open(form) {
    const { currency, amount } = total(form.line_items);
    const id = `cs_${this.livemode ? 'live' : 'test'}_a1${token(56, true)}`;
    const created = now();
    const session = {
      id,
      object: 'checkout.session',
      adaptive_pricing: { enabled: form.adaptive_pricing?.enabled ?? true },
      after_expiration: null,
      allow_promotion_codes: null,
      amount_subtotal: amount,
      amount_total: amount,
      automatic_tax: { enabled: false, liability: null, provider: null, status: null },
      billing_address_collection: null,
      cancel_url: form.cancel_url ?? null,
      client_reference_id: form.client_reference_id ?? null,
      client_secret: null,
      collected_information: null,
      consent: null,
      consent_collection: null,
      created,
      currency,
      currency_conversion: null,
      custom_fields: [],
      custom_text: { after_submit: null, shipping_address: null, submit: null, terms_of_service_acceptance: null },
      customer: null,
      customer_creation: 'if_required',
      customer_details: null,
      customer_email: form.customer_email ?? null,
      discounts: [],
      expires_at: form.expires_at ?? created + day,
      invoice: null,
      invoice_creation: null,
      livemode: this.livemode,
      locale: form.locale ?? null,
      metadata: form.metadata || {},
      mode: 'payment',
      origin_context: null,
      // There is none before the person tries to pay.
      payment_intent: null,
      payment_link: null,
      payment_method_collection: 'if_required',
      payment_method_configuration_details: null,
      payment_method_options: {},
      payment_method_types: form.payment_method_types ?? ['card', 'sepa_debit'],
      payment_status: 'unpaid',
      permissions: null,
      phone_number_collection: { enabled: false },
      recovered_from: null,
      saved_payment_method_options: null,
      setup_intent: null,
      shipping_address_collection: null,
      shipping_cost: null,
      shipping_options: [],
      status: 'open',
      submit_type: form.submit_type ?? null,
      subscription: null,
      success_url: form.success_url,
      total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
      ui_mode: 'hosted_page',
      url: `${this.url}/pay/${id}`,
      wallet_options: null,
    };
    const order = { session, form, title: form.line_items.map((line) => line.price_data.product_data.name).join(', ') };
    this.orders.set(id, order);
    this.count('taken', currency, 0);
    return order;
  }

  close(order, expand) {
    const { status } = order.session;
    if (status !== 'open') {
      const only = 'Only Checkout Sessions with a status in ["open"] can be expired.';
      throw refusal(400, `${only} This Checkout Session has a status of \`${status}\`.`);
    }
    this.expire(order);
    return this.view(order, expand);
  }

  shown({ session, altered }) {
    const merged = { ...session, ...altered };
    for (const [name, value] of Object.entries(altered ?? {})) if (value === null) delete merged[name];
    return merged;
  }

  view(order, expand = []) {
    const shown = this.shown(order);
    if (shown.payment_intent && expand.some((path) => path.split('.')[0] === 'payment_intent')) {
      const rest = expand.filter((path) => path.startsWith('payment_intent.'));
      shown.payment_intent = this.intentView(order, rest.map((path) => path.slice('payment_intent.'.length)));
    }
    return shown;
  }

  intentView({ intent, charge }, expand = []) {
    return expand.includes('latest_charge') && charge ? { ...intent, latest_charge: charge } : intent;
  }

  byIntent(id, status, param) {
    const found = [...this.orders.values()].find(({ intent }) => intent?.id === id);
    return found ?? absent('payment_intent', id, status, param);
  }

  byCharge(id) {
    const found = [...this.orders.values()].find(({ charge }) => charge?.id === id);
    return found ?? absent('charge', id, 404, 'charge');
  }

  balance() {
    const available = Object.entries(this.money.taken).map(([currency, amount]) => ({ amount, currency }));
    return { object: 'balance', available, livemode: this.livemode, pending: [] };
  }

  // Payments.

  pay(order, how) {
    const { session } = order;
    if (session.status !== 'open') throw new Error(`the session is ${session.status}`);
    const settle = {
      now: () => this.settle(order, 'succeeded'),
      later: () => this.settle(order, 'processing'),
      fail: () => this.settle(order, 'requires_payment_method'),
    }[how];
    if (!settle) throw new Error(`no such way to pay: ${how}`);
    settle();
    if (how === 'fail') return;
    Object.assign(session, { status: 'complete', url: null, payment_status: how === 'now' ? 'paid' : 'unpaid' });
    this.tell('checkout.session.completed', order);
  }

  finish(order, as) {
    const { session, intent } = order;
    if (intent?.status !== 'processing') throw new Error('nothing is in flight');
    if (as !== 'succeeded' && as !== 'failed') throw new Error(`no such end: ${as}`);
    this.settle(order, as === 'succeeded' ? 'succeeded' : 'requires_payment_method');
    if (as === 'succeeded') session.payment_status = 'paid';
    this.tell(`checkout.session.async_payment_${as}`, order);
  }

  expire(order) {
    const { session, intent } = order;
    if (session.status !== 'open') throw new Error(`the session is ${session.status}`);
    Object.assign(session, { status: 'expired', url: null });
    if (intent) Object.assign(intent, { status: 'canceled', canceled_at: now(), cancellation_reason: 'automatic' });
    this.tell('checkout.session.expired', order);
  }

  alter(order, changes) {
    order.altered = { ...order.altered, ...changes };
  }

  /// Brings the payment to a status, and makes it first where need be.
  settle(order, status) {
    const { session, form } = order;
    const { amount_total: amount, currency } = session;
    const metadata = form.payment_intent_data?.metadata || {};
    order.intent ??= {
      id: this.id('pi'),
      object: 'payment_intent',
      amount,
      amount_capturable: 0,
      amount_received: 0,
      automatic_payment_methods: null,
      canceled_at: null,
      cancellation_reason: null,
      capture_method: 'automatic_async',
      client_secret: this.id('pi_secret'),
      confirmation_method: 'automatic',
      created: now(),
      currency,
      customer: null,
      description: form.payment_intent_data?.description ?? null,
      last_payment_error: null,
      latest_charge: null,
      livemode: this.livemode,
      metadata,
      next_action: null,
      payment_method: null,
      payment_method_options: {},
      payment_method_types: session.payment_method_types,
      processing: null,
      receipt_email: null,
      setup_future_usage: null,
      shipping: null,
      status: 'requires_payment_method',
    };
    const { intent } = order;
    session.payment_intent = intent.id;
    // What was in flight ends as the same charge; a new try is a new one.
    if (order.charge?.status !== 'pending') {
      order.charge = {
        id: this.id('ch'),
        object: 'charge',
        amount,
        amount_captured: 0,
        amount_refunded: 0,
        balance_transaction: null,
        billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
        captured: false,
        created: now(),
        currency,
        customer: null,
        description: intent.description,
        disputed: false,
        failure_code: null,
        failure_message: null,
        livemode: this.livemode,
        metadata,
        paid: false,
        payment_intent: intent.id,
        payment_method: null,
        payment_method_details: null,
        receipt_email: null,
        refunded: false,
        shipping: null,
        status: 'pending',
      };
    }
    const { charge } = order;
    intent.latest_charge = charge.id;
    intent.status = status;
    if (status === 'succeeded') {
      Object.assign(intent, { amount_received: amount, last_payment_error: null });
      Object.assign(charge, { status: 'succeeded', paid: true, captured: true, amount_captured: amount });
      this.count('taken', currency, amount);
      this.money.payments += 1;
    } else if (status === 'requires_payment_method') {
      const message = 'Your card was declined.';
      const told = { charge: charge.id, code: 'card_declined', decline_code: 'generic_decline', message };
      intent.last_payment_error = { ...told, type: 'card_error' };
      Object.assign(charge, { status: 'failed', failure_code: 'card_declined', failure_message: message });
    }
  }

  refund({ payment_intent: of, charge: ofCharge, amount, reason = null, metadata }, expand = []) {
    if (!of && !ofCharge) {
      throw refusal(400, 'One of the following params should be provided: payment_intent or charge.');
    }
    const order = of ? this.byIntent(of, 400, 'payment_intent') : this.byCharge(ofCharge);
    const { charge, intent } = order;
    if (!charge?.paid) {
      throw refusal(400, `This PaymentIntent (${intent.id}) does not have a successful charge to refund.`);
    }
    const left = charge.amount - charge.amount_refunded;
    if (left === 0 || amount > left) {
      const message = left
        ? `Refund amount (${amount}) is greater than unrefunded amount on charge (${left})`
        : `Charge ${charge.id} has already been refunded.`;
      throw refusal(400, message, { code: 'charge_already_refunded', ...(left && { param: 'amount' }) });
    }
    const refund = {
      id: this.id('re'),
      object: 'refund',
      amount: amount ?? left,
      balance_transaction: null,
      charge: charge.id,
      created: now(),
      currency: charge.currency,
      metadata: metadata || {},
      payment_intent: intent.id,
      reason,
      receipt_number: null,
      source_transfer_reversal: null,
      status: 'succeeded',
      transfer_reversal: null,
    };
    this.refunds.set(refund.id, refund);
    charge.amount_refunded += refund.amount;
    charge.refunded = charge.amount_refunded === charge.amount;
    this.count('refunded', charge.currency, refund.amount);
    this.money.refunds += 1;
    return expand.includes('payment_intent') ? { ...refund, payment_intent: intent } : refund;
  }

  // Webhooks.

  tell(type, order) {
    const object = structuredClone(this.shown(order));
    const event = {
      id: this.id('evt'),
      object: 'event',
      api_version: version,
      created: now(),
      data: { object },
      livemode: this.livemode,
      pending_webhooks: 1,
      request: { id: null, idempotency_key: null },
      type,
    };
    const wrong = [...badObject('event', event), ...(order.altered ? [] : badObject('checkout.session', object))];
    for (const { message } of wrong) this.violations.push({ event: type, message });
    this.happened(type, order.session.id, event);
  }

  signed(payload, { secret, age = 0 }) {
    const secrets = secret ? [secret] : (this.webhooks.secrets ?? []);
    if (secret === null || secrets.length === 0) return {};
    const timestamp = now() - age;
    // While a secret is rolled, there is a signature by each.
    const parts = secrets.map((one) => {
      const header = Stripe.webhooks.generateTestHeaderString({ payload, secret: one, timestamp });
      return header.slice(header.indexOf(',') + 1);
    });
    return { 'stripe-signature': [`t=${timestamp}`, ...parts].join(',') };
  }

  // The hosted page.

  offer({ session, title }) {
    return {
      title,
      amount: written(session.amount_total, session.currency),
      open: session.status === 'open',
      back: session.cancel_url,
      after: session.success_url.replaceAll('{CHECKOUT_SESSION_ID}', session.id),
    };
  }
}

function absent(kind, id, status, param) {
  throw refusal(status, `No such ${kind}: '${id}'`, { code: 'resource_missing', param });
}

function total(lines) {
  const amount = lines.reduce((sum, line) => sum + line.quantity * line.price_data.unit_amount, 0);
  return { amount, currency: lines[0].price_data.currency.toLowerCase() };
}

function written(amount, currency) {
  const decimals = noDecimals.includes(currency) ? 0 : threeDecimals.includes(currency) ? 3 : 2;
  return `${(amount / 10 ** decimals).toFixed(decimals)} ${currency.toUpperCase()}`;
}

await play((url, settings) => new StripeCheckout(url, settings));
