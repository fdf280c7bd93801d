// PayPal's Orders v2 on a free port of loopback: `node paypal.mjs`. What it reads and answers is in shared.mjs;
// settings:
//   {"client_id", "client_secret", "webhook": {"url", "id"} or null}
// An order is approved by the person and captured by the shop: only then is it paid. Fields of requests that PayPal's
// description lacks are found among the violations, though PayPal may overlook them.
import { createSign, createVerify, generateKeyPairSync, randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { play, Processor, token } from './shared.mjs';

const decimals = (currency) => (['HUF', 'JPY', 'TWD'].includes(currency) ? 0 : 2);
const currencies = (
  'AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF ILS JPY MXN MYR NOK NZD PHP PLN SEK SGD THB TWD USD'
).split(' ');
const algorithm = 'SHA256withRSA';
const eventTypes = [
  'CHECKOUT.ORDER.APPROVED',
  'PAYMENT.CAPTURE.COMPLETED',
  'PAYMENT.CAPTURE.DENIED',
  'PAYMENT.CAPTURE.PENDING',
  'PAYMENT.CAPTURE.REFUNDED',
];

// What may be in a request, as far as the shop could have a use for it: a limit of length, values, or more fields.
const money = { currency_code: 3, value: 32 };
const described = {
  order: {
    intent: ['CAPTURE', 'AUTHORIZE'],
    processing_instruction: ['ORDER_COMPLETE_ON_PAYMENT_APPROVAL', 'NO_INSTRUCTION'],
    purchase_units: [{
      reference_id: 256,
      amount: { ...money, breakdown: Object },
      payee: Object,
      payment_instruction: Object,
      description: 3000,
      custom_id: 127,
      invoice_id: 127,
      soft_descriptor: 127,
      items: Object,
      shipping: Object,
      supplementary_data: Object,
    }],
    payment_source: {
      paypal: {
        experience_context: {
          brand_name: 127,
          locale: 10,
          shipping_preference: ['GET_FROM_FILE', 'NO_SHIPPING', 'SET_PROVIDED_ADDRESS'],
          contact_preference: 24,
          return_url: 2147483647,
          cancel_url: 2147483647,
          app_switch_context: Object,
          landing_page: ['LOGIN', 'GUEST_CHECKOUT', 'NO_PREFERENCE', 'BILLING'],
          user_action: ['CONTINUE', 'PAY_NOW'],
          payment_method_preference: ['UNRESTRICTED', 'IMMEDIATE_PAYMENT_REQUIRED'],
          order_update_callback_config: Object,
        },
        email_address: 254,
        name: Object,
        phone: Object,
        birth_date: 10,
        address: Object,
        attributes: Object,
      },
    },
    application_context: Object,
    payer: Object,
  },
  capture: { payment_source: Object },
  refund: { amount: money, custom_id: 127, invoice_id: 127, note_to_payer: 255, payment_instruction: Object },
  verify: {
    auth_algo: 100,
    cert_url: 500,
    transmission_id: 50,
    transmission_sig: 500,
    transmission_time: 100,
    webhook_id: 50,
    webhook_event: Object,
  },
};

/// Where a value is not as described: [field, what is wrong].
function* misfits(value, as, field = '') {
  if (as === Object) {
    if (typeof value !== 'object' || value === null) yield [field, 'INVALID_PARAMETER_SYNTAX'];
  } else if (typeof as === 'number') {
    if (typeof value !== 'string') yield [field, 'INVALID_PARAMETER_SYNTAX'];
    else if (value === '' || [...value].length > as) yield [field, 'INVALID_STRING_LENGTH'];
  } else if (Array.isArray(as) && typeof as[0] === 'string') {
    if (!as.includes(value)) yield [field, 'INVALID_PARAMETER_VALUE'];
  } else if (Array.isArray(as)) {
    if (!Array.isArray(value)) yield [field, 'INVALID_PARAMETER_SYNTAX'];
    else for (const [i, one] of value.entries()) yield* misfits(one, as[0], `${field}/${i}`);
  } else if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    yield [field, 'INVALID_PARAMETER_SYNTAX'];
  } else {
    for (const [name, one] of Object.entries(value)) {
      if (name in as) yield* misfits(one, as[name], `${field}/${name}`);
      else yield [`${field}/${name}`, 'UNKNOWN_FIELD'];
    }
  }
}

const names = {
  400: ['INVALID_REQUEST', 'Request is not well-formed, syntactically incorrect, or violates schema.'],
  401: ['AUTHENTICATION_FAILURE', 'Authentication failed due to invalid authentication credentials.'],
  403: ['NOT_AUTHORIZED', 'Authorization failed due to insufficient permissions.'],
  404: ['RESOURCE_NOT_FOUND', 'The specified resource does not exist.'],
  409: ['RESOURCE_CONFLICT', 'The server has detected a conflict while processing this request.'],
  415: ['UNSUPPORTED_MEDIA_TYPE', 'The server does not support the request payload’s media type.'],
  422: [
    'UNPROCESSABLE_ENTITY',
    'The requested action could not be performed, semantically incorrect, or failed business validation.',
  ],
  429: ['RATE_LIMIT_REACHED', 'Too many requests. Blocked due to rate limiting.'],
  500: ['INTERNAL_SERVER_ERROR', 'An internal server error has occurred.'],
  503: ['SERVICE_UNAVAILABLE', 'Service Unavailable.'],
};

function refusal(status, issue, description, more) {
  const [name, message] = names[status] ?? names[status < 500 ? 400 : 500];
  const href = `https://developer.paypal.com/api/rest/reference/orders/v2/errors/#${issue ?? name}`;
  const details = issue ? [{ issue, description, ...more }] : [];
  const links = [{ href, rel: 'information_link', method: 'GET' }];
  return { status, body: { name, message, debug_id: token(13, true), details, links } };
}

const ok = (body) => ({ status: 200, body });
const missing = (field) =>
  refusal(400, 'MISSING_REQUIRED_PARAMETER', 'A required field is missing.', { field, location: 'body' });
const invalid = (field, why) => refusal(400, 'INVALID_PARAMETER_VALUE', why, { field, location: 'body' });

const time = () => new Date().toISOString().replace(/\.\d+/, '');

function minor({ value, currency_code: currency }) {
  return Math.round(Number(value) * 10 ** decimals(currency));
}

function major(amount, currency) {
  const places = decimals(currency);
  return { currency_code: currency, value: (amount / 10 ** places).toFixed(places) };
}

/// The text of a member of an object, as it was sent: what is signed is the text and not what it means.
function member(raw, name) {
  const start = raw.indexOf('{', raw.search(new RegExp(`"${name}"\\s*:`)));
  let depth = 0;
  for (const { 0: piece, index } of raw.slice(start).matchAll(/"(?:[^"\\]|\\.)*"|[{}]/gs)) {
    if (piece === '{') depth += 1;
    if (piece === '}') depth -= 1;
    if (depth === 0) return raw.slice(start, start + index + 1);
  }
  return '';
}

class PayPal extends Processor {
  tokens = new Set();
  /// By path and PayPal-Request-Id: what the same request is answered when it comes again; nothing as long as the first
  /// is under way.
  keys = new Map();
  pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
  stranger;

  constructor(url, settings) {
    super(url, settings);
    this.basic = Buffer.from(`${settings.client_id}:${settings.client_secret}`).toString('base64');
    this.certificate = `${url}/v1/notifications/certs/CERT-${token(8, true)}-${token(8, true)}`;
  }

  // Requests.

  read(request) {
    const { headers, raw, search } = request;
    request.key = headers['paypal-request-id'];
    request.full = headers.prefer === 'return=representation';
    request.params = Object.fromEntries(new URLSearchParams(search));
    if ((headers['content-type'] ?? '').startsWith('application/json')) {
      try {
        request.params = raw ? JSON.parse(raw) : {};
      } catch {
        request.malformed = true;
      }
    } else if (raw) {
      request.params = Object.fromEntries(new URLSearchParams(raw));
    }
  }

  failure(status) {
    return status === 401 ? invalidToken() : refusal(status);
  }

  /// The same request again does not act again, but is told how things stand. Nothing is kept of what was refused.
  async once(request, run) {
    const { headers, key, malformed, method, params, path } = request;
    if (path === '/v1/oauth2/token') return run();
    const given = /^Bearer (.*)$/.exec(headers.authorization ?? '')?.[1];
    if (!this.tokens.has(given)) return invalidToken();
    if (method !== 'POST') return run();
    if (!(headers['content-type'] ?? '').startsWith('application/json')) return refusal(415);
    if (malformed) return refusal(400, 'MALFORMED_REQUEST_JSON', 'The request JSON is not well formed.');
    if (!key) return run();
    const at = `${path} ${key}`;
    const print = JSON.stringify(params);
    const known = this.keys.get(at);
    if (known && known.print !== print) {
      this.violate(request, 'the PayPal-Request-Id was used with another body');
      const description = 'The PayPal-Request-Id has already been used for another request.';
      return refusal(422, 'PAYPAL_REQUEST_ID_PREVIOUSLY_USED', description);
    }
    if (known && !known.again) {
      const description = 'A previous request on this resource is currently in progress.';
      return refusal(409, 'PREVIOUS_REQUEST_IN_PROGRESS', description);
    }
    if (known) return ok(known.again());
    const first = { print };
    this.keys.set(at, first);
    const answer = await run();
    first.again = request.again;
    if (!first.again) this.keys.delete(at);
    return answer;
  }

  violate({ method, path }, message) {
    this.violations.push({ request: `${method} ${path}`, message });
  }

  /// Refuses what is not as described; what is not described at all is only noted.
  fits(request, as) {
    for (const [field, issue] of misfits(request.params, described[as])) {
      this.violate(request, `${field}: ${issue}`);
      if (issue !== 'UNKNOWN_FIELD') throw refusal(400, issue, 'The value is not valid.', { field, location: 'body' });
    }
  }

  act(request) {
    const { method, path } = request;
    const routes = [
      ['POST', /^\/v1\/oauth2\/token$/, () => this.authenticate(request)],
      ['POST', /^\/v2\/checkout\/orders$/, () => this.open(request)],
      ['GET', /^\/v2\/checkout\/orders\/([^/]+)$/, (id) => ok(this.shown(this.order(id)))],
      ['POST', /^\/v2\/checkout\/orders\/([^/]+)\/capture$/, (id) => this.capture(this.order(id), request)],
      ['GET', /^\/v2\/payments\/captures\/([^/]+)$/, (id) => ok(this.captureShown(this.captured(id)))],
      ['POST', /^\/v2\/payments\/captures\/([^/]+)\/refund$/, (id) => this.refund(this.captured(id), request)],
      ['GET', /^\/v2\/payments\/refunds\/([^/]+)$/, (id) => ok(this.refunded(id))],
      ['POST', /^\/v1\/notifications\/verify-webhook-signature$/, () => this.verify(request)],
      ['GET', /^\/v1\/notifications\/webhooks\/([^/]+)$/, (id) => this.webhook(decodeURIComponent(id))],
    ];
    for (const [verb, pattern, route] of routes) {
      const found = verb === method && pattern.exec(path);
      if (!found) continue;
      try {
        return structuredClone(route(found[1]));
      } catch (error) {
        if (error.status) return error;
        throw error;
      }
    }
    this.violate(request, 'no such operation');
    return refusal(404);
  }

  authenticate({ headers, params }) {
    if (headers.authorization !== `Basic ${this.basic}`) {
      const body = { error: 'invalid_client', error_description: 'Client Authentication failed' };
      return { status: 401, body };
    }
    if (params.grant_type !== 'client_credentials') {
      return { status: 400, body: { error: 'unsupported_grant_type', error_description: 'Unsupported grant_type' } };
    }
    const given = `A21AA${token(80)}`;
    this.tokens.add(given);
    const scope = 'https://uri.paypal.com/services/payments/payment';
    const more = { token_type: 'Bearer', app_id: `APP-${token(17)}`, expires_in: 32400, nonce: token(43) };
    return ok({ scope, access_token: given, ...more });
  }

  // Orders.

  order(id) {
    const order = this.orders.get(id);
    if (order && !order.gone) return order;
    const description = 'Specified resource ID does not exist. Please check the resource ID and try again.';
    throw refusal(404, 'INVALID_RESOURCE_ID', description);
  }

  open(request) {
    this.fits(request, 'order');
    const { intent, purchase_units: units, payment_source: source, application_context: application } = request.params;
    if (!intent) throw missing('/intent');
    if (intent !== 'CAPTURE') throw invalid('/intent', 'This fake knows CAPTURE alone.');
    if (!units?.length) throw missing('/purchase_units');
    if (units.length > 1) throw invalid('/purchase_units', 'This fake knows one unit alone.');
    const [unit] = units;
    const field = "/purchase_units/@reference_id=='default'/amount";
    if (!unit.amount) throw missing(field);
    const amount = this.sum(unit.amount, field);
    const context = source?.paypal?.experience_context ?? application ?? {};
    for (const name of ['return_url', 'cancel_url']) {
      if (context[name] === undefined || URL.canParse(context[name])) continue;
      throw invalid(`/${name}`, 'The value is not a URL.');
    }
    const { description, soft_descriptor: descriptor } = unit;
    const cut = {
      ...(description && { description: [...description].slice(0, 127).join('') }),
      ...(descriptor && { soft_descriptor: [...descriptor].slice(0, 22).join('') }),
    };
    const order = {
      id: token(17),
      status: source?.paypal ? 'PAYER_ACTION_REQUIRED' : 'CREATED',
      source: source?.paypal && { paypal: {} },
      unit: { reference_id: 'default', ...unit, ...cut, amount, payee: { merchant_id: 'SIDEGATETEST1' } },
      context,
      created: time(),
      refunds: [],
    };
    this.orders.set(order.id, order);
    this.count('taken', amount.currency_code.toLowerCase(), 0);
    const answer = () => (request.full ? this.shown(order) : this.brief(order));
    request.again = answer;
    // What names its payment source is answered 200, by itself 201.
    return { status: order.source ? 200 : 201, body: answer() };
  }

  /// An amount, written with as many decimals as its currency has.
  sum({ currency_code: currency, value }, field) {
    const more = { field: `${field}/value`, value, location: 'body' };
    const bad = (status, issue, description) => refusal(status, issue, description, more);
    if (!currency || !value) throw missing(field);
    if (!/^((-?[0-9]+)|(-?([0-9]+)?[.][0-9]+))$/.test(value)) throw invalid(field, 'The value is not an amount.');
    if (!currencies.includes(currency)) throw bad(422, 'CURRENCY_NOT_SUPPORTED', 'Currency code is not supported.');
    const places = value.split('.')[1]?.length ?? 0;
    if (places > 0 && decimals(currency) === 0) {
      throw bad(422, 'DECIMALS_NOT_SUPPORTED', 'Currency does not support decimals.');
    }
    if (places > 2) throw bad(422, 'DECIMAL_PRECISION', 'Only two decimal places are supported.');
    if (!(Number(value) > 0)) throw bad(422, 'CANNOT_BE_ZERO_OR_NEGATIVE', 'Must be greater than zero.');
    return major(minor({ value, currency_code: currency }), currency);
  }

  links({ id, source, status }) {
    const self = `${this.url}/v2/checkout/orders/${id}`;
    const pay = { href: `${this.url}/pay/${id}`, rel: source ? 'payer-action' : 'approve', method: 'GET' };
    const waits = !['APPROVED', 'COMPLETED'].includes(status);
    return [
      { href: self, rel: 'self', method: 'GET' },
      ...(waits ? [pay] : []),
      ...(status === 'COMPLETED' ? [] : [{ href: `${self}/capture`, rel: 'capture', method: 'POST' }]),
    ];
  }

  brief(order) {
    const { id, source, status } = order;
    return { id, status, ...(source && { payment_source: source }), links: this.links(order) };
  }

  shown(order) {
    const { id, status, source, unit, created, approved, capture, refunds, altered } = order;
    const payments = capture && { captures: [this.captureShown(order, {})], ...(refunds.length && { refunds }) };
    const full = {
      id,
      intent: 'CAPTURE',
      status,
      ...(source && { payment_source: source }),
      purchase_units: [{ ...changed(unit, altered), ...(payments && { payments }) }],
      ...(approved && { payer, update_time: capture?.update_time ?? approved }),
      create_time: created,
      links: this.links(order),
    };
    const { amount_total: amount, currency, client_reference_id: reference, ...rest } = altered ?? {};
    return merged(full, rest);
  }

  /// What tests call as at Stripe is changed where PayPal has it.
  alter(order, changes) {
    const none = Object.keys(changes).find((name) => name === 'livemode' || name === 'metadata');
    if (none) throw new Error(`PayPal has no ${none}`);
    order.altered = { ...order.altered, ...changes };
  }

  // Payments.

  pay(order, how) {
    if (order.gone || !['CREATED', 'PAYER_ACTION_REQUIRED'].includes(order.status)) {
      throw new Error(`the order is ${order.gone ? 'gone' : order.status}`);
    }
    if (!['now', 'later', 'fail'].includes(how)) throw new Error(`no such way to pay: ${how}`);
    if (how === 'fail') return;
    const { name, email_address: email, payer_id: account } = payer;
    const wallet = { email_address: email, account_id: account, account_status: 'VERIFIED', name };
    Object.assign(order, { status: 'APPROVED', approved: time(), later: how === 'later', source: { paypal: wallet } });
    const summary = 'An order has been approved by buyer';
    this.tell('CHECKOUT.ORDER.APPROVED', 'checkout-order', order, this.shown(order), summary);
  }

  capture(order, request) {
    this.fits(request, 'capture');
    if (order.capture) throw refusal(422, 'ORDER_ALREADY_CAPTURED', 'Order already captured.');
    if (order.status !== 'APPROVED') {
      throw refusal(422, 'ORDER_NOT_APPROVED', 'Payer has not yet approved the Order for payment.');
    }
    const { amount, custom_id: custom, invoice_id: invoice } = order.unit;
    const before = [...this.orders.values()].find(({ capture, unit }) => capture && unit.invoice_id === invoice);
    if (invoice && before) throw refusal(422, 'DUPLICATE_INVOICE_ID', 'Duplicate Invoice ID detected.');
    const at = time();
    order.status = 'COMPLETED';
    order.capture = {
      id: token(17),
      status: 'PENDING',
      amount,
      final_capture: true,
      ...(custom && { custom_id: custom }),
      ...(invoice && { invoice_id: invoice }),
      seller_protection: {
        status: 'ELIGIBLE',
        dispute_categories: ['ITEM_NOT_RECEIVED', 'UNAUTHORIZED_TRANSACTION'],
      },
      create_time: at,
      update_time: at,
    };
    if (order.later) {
      order.capture.status_details = { reason: 'ECHECK' };
      this.tellOfCapture('PENDING', order, 'is pending');
    } else {
      this.complete(order);
    }
    const answer = () => {
      const shown = this.shown(order);
      if (request.full) return shown;
      const { intent, create_time: created, update_time: updated, purchase_units: units, ...brief } = shown;
      const [{ reference_id: reference, payments }] = units;
      return { ...brief, purchase_units: [{ reference_id: reference, payments }] };
    };
    request.again = answer;
    return { status: 201, body: answer() };
  }

  complete(order) {
    const { amount } = order.capture;
    const nothing = major(0, amount.currency_code);
    const breakdown = { gross_amount: amount, paypal_fee: nothing, net_amount: amount };
    delete order.capture.status_details;
    Object.assign(order.capture, { status: 'COMPLETED', seller_receivable_breakdown: breakdown, update_time: time() });
    this.count('taken', amount.currency_code.toLowerCase(), minor(amount));
    this.money.payments += 1;
    this.tellOfCapture('COMPLETED', order, 'completed');
  }

  finish(order, as) {
    if (order.capture?.status !== 'PENDING') throw new Error('nothing is in flight');
    if (as === 'succeeded') return this.complete(order);
    if (as !== 'failed') throw new Error(`no such end: ${as}`);
    delete order.capture.status_details;
    Object.assign(order.capture, { status: 'DECLINED', update_time: time() });
    return this.tellOfCapture('DENIED', order, 'denied');
  }

  /// PayPal forgets an order that was not captured in time.
  expire(order) {
    if (order.capture) throw new Error('the order is captured');
    order.gone = true;
  }

  captured(id) {
    const order = [...this.orders.values()].find(({ capture }) => capture?.id === id);
    if (order) return order;
    throw refusal(404, 'INVALID_RESOURCE_ID', 'Specified resource ID does not exist.');
  }

  /// By itself it says of which order it is.
  captureShown({ id, capture, altered }, more = { supplementary_data: { related_ids: { order_id: id } } }) {
    const self = `${this.url}/v2/payments/captures/${capture.id}`;
    return {
      ...changed(capture, altered),
      ...more,
      links: [
        { href: self, rel: 'self', method: 'GET' },
        { href: `${self}/refund`, rel: 'refund', method: 'POST' },
        { href: `${this.url}/v2/checkout/orders/${id}`, rel: 'up', method: 'GET' },
      ],
    };
  }

  refund(order, request) {
    this.fits(request, 'refund');
    const { capture, refunds } = order;
    if (capture.status === 'PENDING') {
      throw refusal(422, 'PENDING_CAPTURE', 'Cannot initiate a refund as the capture is pending.');
    }
    if (capture.status === 'REFUNDED') {
      throw refusal(422, 'CAPTURE_FULLY_REFUNDED', 'The capture has already been fully refunded.');
    }
    if (!['COMPLETED', 'PARTIALLY_REFUNDED'].includes(capture.status)) {
      throw refusal(422, 'REFUND_NOT_ALLOWED', 'Refund is not allowed for this capture.');
    }
    const { currency_code: currency } = capture.amount;
    const left = minor(capture.amount) - refunds.reduce((sum, { amount }) => sum + minor(amount), 0);
    const asked = request.params.amount && this.sum(request.params.amount, '/amount');
    if (asked && asked.currency_code !== currency) {
      throw refusal(422, 'REFUND_CAPTURE_CURRENCY_MISMATCH', 'Refund must be in the same currency as the capture.');
    }
    const amount = asked ? minor(asked) : left;
    if (amount > left) {
      throw refusal(422, 'REFUND_AMOUNT_EXCEEDED', 'The refund amount must not exceed the capture amount.');
    }
    const { custom_id: custom = order.unit.custom_id, invoice_id: invoice, note_to_payer: note } = request.params;
    const id = token(17);
    const at = time();
    const refund = {
      id,
      status: 'COMPLETED',
      amount: major(amount, currency),
      ...(custom && { custom_id: custom }),
      ...(invoice && { invoice_id: invoice }),
      ...(note && { note_to_payer: note }),
      create_time: at,
      update_time: at,
      links: [
        { href: `${this.url}/v2/payments/refunds/${id}`, rel: 'self', method: 'GET' },
        { href: `${this.url}/v2/payments/captures/${capture.id}`, rel: 'up', method: 'GET' },
      ],
    };
    refunds.push(refund);
    Object.assign(capture, { status: amount === left ? 'REFUNDED' : 'PARTIALLY_REFUNDED', update_time: at });
    this.count('refunded', currency.toLowerCase(), amount);
    this.money.refunds += 1;
    this.tell('PAYMENT.CAPTURE.REFUNDED', 'refund', order, refund, 'A payment was refunded');
    const answer = () => (request.full ? refund : { id, status: refund.status, links: refund.links });
    request.again = answer;
    return { status: 201, body: answer() };
  }

  refunded(id) {
    const found = [...this.orders.values()].flatMap(({ refunds }) => refunds).find((refund) => refund.id === id);
    if (found) return found;
    throw refusal(404, 'INVALID_RESOURCE_ID', 'Specified resource ID does not exist.');
  }

  // Webhooks.

  tellOfCapture(what, order, said) {
    const { value, currency_code: currency } = order.capture.amount;
    const summary = `Payment ${said} for ${value} ${currency}`;
    this.tell(`PAYMENT.CAPTURE.${what}`, 'capture', order, this.captureShown(order), summary);
  }

  tell(type, kind, order, resource, summary) {
    const id = `WH-${token(17)}-${token(17)}`;
    const self = `${this.url}/v1/notifications/webhooks-events/${id}`;
    const event = {
      id,
      event_version: '1.0',
      create_time: new Date().toISOString(),
      resource_type: kind,
      resource_version: '2.0',
      event_type: type,
      summary,
      resource: structuredClone(resource),
      links: [
        { href: self, rel: 'self', method: 'GET' },
        { href: `${self}/resend`, rel: 'resend', method: 'POST' },
      ],
    };
    this.happened(type, order.id, event);
  }

  /// The webhook's own id is signed though it is not sent. Another secret than ours is a stranger's key.
  signed(body, { secret, age = 0 }) {
    if (secret === null) return {};
    if (secret) this.stranger ??= generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { privateKey } = secret ? this.stranger : this.pair;
    const id = randomUUID();
    const at = new Date(Date.now() - age * 1000).toISOString().replace(/\.\d+/, '');
    const text = `${id}|${at}|${this.webhooks.id}|${crc32(body)}`;
    return {
      'paypal-auth-algo': algorithm,
      'paypal-cert-url': this.certificate,
      'paypal-transmission-id': id,
      'paypal-transmission-sig': createSign('RSA-SHA256').update(text).sign(privateKey, 'base64'),
      'paypal-transmission-time': at,
    };
  }

  verify(request) {
    this.fits(request, 'verify');
    const { params } = request;
    const absent = Object.keys(described.verify).find((name) => params[name] === undefined);
    if (absent) {
      this.violate(request, `/${absent}: MISSING_REQUIRED_PARAMETER`);
      throw missing(`/${absent}`);
    }
    const { transmission_id: id, transmission_time: at, webhook_id: webhook, transmission_sig: signature } = params;
    const text = `${id}|${at}|${webhook}|${crc32(member(request.raw, 'webhook_event'))}`;
    const good =
      params.auth_algo === algorithm &&
      params.cert_url === this.certificate &&
      webhook === this.webhooks.id &&
      createVerify('RSA-SHA256').update(text).verify(this.pair.publicKey, signature, 'base64');
    return ok({ verification_status: good ? 'SUCCESS' : 'FAILURE' });
  }

  webhook(id) {
    if (id !== this.webhooks.id) {
      const { status, body } = refusal(404);
      const message = 'The requested resource ID was not found.';
      return { status, body: { ...body, name: 'INVALID_RESOURCE_ID', message } };
    }
    const types = eventTypes.map((name) => ({ name, description: name, status: 'ENABLED' }));
    const links = [{ href: `${this.url}/v1/notifications/webhooks/${id}`, rel: 'self', method: 'GET' }];
    return ok({ id, url: this.webhooks.url, event_types: types, links });
  }

  // The hosted page.

  offer({ id, status, gone, unit, context }) {
    const led = (to, more) => {
      if (!to) return undefined;
      const url = new URL(to);
      for (const [name, value] of Object.entries({ token: id, ...more })) url.searchParams.append(name, value);
      return url.href;
    };
    return {
      title: unit.description ?? unit.reference_id,
      amount: `${unit.amount.value} ${unit.amount.currency_code}`,
      open: !gone && ['CREATED', 'PAYER_ACTION_REQUIRED'].includes(status),
      back: led(context.cancel_url),
      after: led(context.return_url, { PayerID: payer.payer_id }) ?? `${this.url}/pay/${id}`,
    };
  }
}

const payer = {
  name: { given_name: 'Test', surname: 'Payer' },
  email_address: 'payer@people.example',
  payer_id: 'SIDEGATEPAYER',
  address: { country_code: 'US' },
};

/// Over what is there; null removes.
function merged(object, changes) {
  const whole = { ...object, ...changes };
  for (const [name, value] of Object.entries(changes)) if (value === null) delete whole[name];
  return whole;
}

function changed(unit, { amount_total: total, currency, client_reference_id: reference } = {}) {
  const code = (currency ?? unit.amount.currency_code).toUpperCase();
  const amount = total === undefined ? { ...unit.amount } : major(total, code);
  amount.currency_code = code;
  if (currency === null) delete amount.currency_code;
  const custom = reference !== undefined && { custom_id: reference };
  return merged(unit, { amount: total === null ? null : amount, ...custom });
}

function invalidToken() {
  const description = 'The token passed in was not found in the system';
  return { status: 401, body: { error: 'invalid_token', error_description: description } };
}

await play((url, settings) => new PayPal(url, settings));
