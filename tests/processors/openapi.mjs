// Stripe's OpenAPI document, asked whether a request or an answer fits it.
import { readFileSync } from 'node:fs';
import Ajv from 'ajv';

// tests/run brings it.
const place = new URL('../.tools/stripe/seahaven_stripe_world/spec/spec3.json', import.meta.url);
const { components, info, paths } = JSON.parse(readFileSync(place));
export const { version } = info;

// Where an answer may embed an object it is held to the object's id, since the objects refer to each other so richly
// that otherwise nearly all of the document would be compiled. These alone can be asked for in full.
export const expandable = ['payment_intent', 'latest_charge'];

// Optimising would take longer than all that is ever checked.
const quick = { inlineRefs: false, code: { optimize: false } };
const options = { strict: false, validateFormats: false, allErrors: true, ...quick };
const kinds = {
  plain: { ajv: new Ajv(options), embedded: [] },
  expanded: { ajv: new Ajv(options), embedded: expandable },
  // A form has strings alone.
  form: { ajv: new Ajv({ ...options, coerceTypes: true }), embedded: [] },
};

/// JSON Schema from OpenAPI's 3.0: what may be null says so by its own keyword there. What is not described is refused,
/// in requests as Stripe does, in answers so that our fake invents nothing.
function translated(schema, embedded, refs) {
  if (schema.$ref) {
    refs.add(schema.$ref.split('/').pop());
    return { $ref: schema.$ref.replace('#/components/schemas/', '') };
  }
  const { nullable, properties, items, anyOf, additionalProperties, ...rest } = schema;
  for (const key of Object.keys(rest)) if (key === 'description' || key.startsWith('x-')) delete rest[key];
  if (properties) {
    const expands = schema['x-expandableFields'] ?? [];
    rest.properties = Object.fromEntries(Object.entries(properties).map(([name, property]) => {
      const id = property.anyOf?.find(({ type }) => type === 'string');
      const shut = id && expands.includes(name) && !embedded.includes(name);
      return [name, translated(shut ? { ...property, anyOf: [id] } : property, embedded, refs)];
    }));
    rest.additionalProperties = false;
  }
  if (items) rest.items = translated(items, embedded, refs);
  if (anyOf) rest.anyOf = anyOf.map((one) => translated(one, embedded, refs));
  if (additionalProperties !== undefined) {
    const schema = typeof additionalProperties === 'object';
    rest.additionalProperties = schema ? translated(additionalProperties, embedded, refs) : additionalProperties;
  }
  return nullable ? { anyOf: [rest, { type: 'null' }] } : rest;
}

const compiled = new Map();
function check(kind, name, schema) {
  const key = `${kind} ${name}`;
  if (!compiled.has(key)) {
    const { ajv, embedded } = kinds[kind];
    const refs = new Set();
    const root = translated(schema, embedded, refs);
    // Grows while it is walked.
    for (const ref of refs) {
      const told = translated(components.schemas[ref], embedded, refs);
      if (!ajv.schemas[ref]) ajv.addSchema(told, ref);
    }
    compiled.set(key, ajv.compile(root));
  }
  return compiled.get(key);
}

/// What is wrong with it: [{at, message}]. `value` is changed to the types that the document names.
function wrong(validate, value) {
  if (validate(value)) return [];
  return validate.errors.map(({ instancePath, keyword, message, params }) => {
    const name = params.additionalProperty ?? params.missingProperty;
    const at = [...instancePath.split('/').slice(1), ...(name ? [name] : [])];
    return { at, keyword, message: `${at.join('.')}: ${message}` };
  });
}

/// The operation at a path, e.g. {method: 'get', template: '/v1/refunds/{refund}'}.
export function operation(method, path) {
  const parts = path.split('/');
  const fits = (template) => {
    const names = template.split('/');
    return names.length === parts.length && names.every((name, i) => name.startsWith('{') || name === parts[i]);
  };
  const found = Object.keys(paths).filter((template) => paths[template][method.toLowerCase()] && fits(template));
  // A name in full goes before a placeholder.
  return found.sort((a, b) => a.split('{').length - b.split('{').length)[0];
}

export function badRequest(method, template, query, form) {
  const { parameters = [], requestBody } = paths[template][method.toLowerCase()];
  const properties = parameters.filter((one) => one.in === 'query').map(({ name, schema }) => [name, schema]);
  const asked = { type: 'object', properties: Object.fromEntries(properties) };
  const said = requestBody?.content['application/x-www-form-urlencoded']?.schema ?? { type: 'object', properties: {} };
  return [
    ...wrong(check('form', `${method} ${template} ?`, asked), query),
    ...wrong(check('form', `${method} ${template}`, said), form),
  ];
}

export function badAnswer(method, template, status, body, { expanded = false } = {}) {
  const { responses } = paths[template][method.toLowerCase()];
  const { schema } = (responses[status] ?? responses.default).content['application/json'];
  return wrong(check(expanded ? 'expanded' : 'plain', schema.$ref, schema), body);
}

export function badObject(name, value) {
  const $ref = `#/components/schemas/${name}`;
  return wrong(check('plain', $ref, { $ref }), value);
}
