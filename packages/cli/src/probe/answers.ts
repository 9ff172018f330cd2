import { member } from './member.ts';

/** A limit that is higher than any answer needs. */
const LARGEST = 65_536;

/** Answers that agree to every question of a server, with the simplest values that the question's schema allows. */
export function answersTo(questions: unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(Object(questions)).map(([key, question]) => [key, answerTo(question)]));
}

function answerTo(question: unknown): unknown {
  const method = member(question, 'method');
  if (method === 'roots/list') return { roots: [] };
  if (method === 'sampling/createMessage') {
    return {
      role: 'assistant',
      model: 'sealring-probe',
      content: { type: 'text', text: 'probe' },
      stopReason: 'endTurn',
    };
  }
  const properties = member(member(member(question, 'params'), 'requestedSchema'), 'properties');
  const content = Object.entries(Object(properties)).map(([name, schema]) => [name, valueFor(schema)]);
  return { action: 'accept', content: Object.fromEntries(content) };
}

function valueFor(schema: unknown): unknown {
  const preset = member(schema, 'default') ?? first(member(schema, 'enum')) ?? constant(schema);
  if (preset !== undefined) return preset;
  switch (member(schema, 'type')) {
    case 'boolean':
      return true;
    case 'number':
    case 'integer':
      return member(schema, 'minimum') ?? Math.min(1, numberOf(schema, 'maximum') ?? 1);
    case 'array':
      return choicesOf(member(schema, 'items')).slice(0, numberOf(schema, 'minItems') || 1);
    default:
      return textFor(member(schema, 'format'))
        .padEnd(numberOf(schema, 'minLength') ?? 0, 'e')
        .slice(0, numberOf(schema, 'maxLength'));
  }
}

/** The values that the items of a list may have; only the string `probe` if any value is allowed. */
function choicesOf(items: unknown): readonly unknown[] {
  const [values, titled] = [member(items, 'enum'), member(items, 'anyOf') ?? member(items, 'oneOf')];
  if (Array.isArray(values)) return values;
  return Array.isArray(titled) ? titled.map((one) => member(one, 'const')) : ['probe'];
}

function numberOf(schema: unknown, name: string): number | undefined {
  const value = member(schema, name);
  // A server may ask for any length.
  return typeof value === 'number' ? Math.min(value, LARGEST) : undefined;
}

function constant(schema: unknown): unknown {
  return member(first(member(schema, 'oneOf') ?? member(schema, 'anyOf')), 'const');
}

function first(values: unknown): unknown {
  return Array.isArray(values) ? values[0] : undefined;
}

function textFor(format: unknown): string {
  if (format === 'email') return 'probe@example.com';
  if (format === 'uri') return 'https://example.com/';
  if (format === 'date') return '2026-01-01';
  return format === 'date-time' ? '2026-01-01T00:00:00Z' : 'probe';
}
