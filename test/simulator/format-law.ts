/* A second specification of the ring document: the final document must follow it, whatever core accepts. */
const MEMBERS = {
  document: ['format', 'ring', 'claim', 'keys'],
  key: ['id', 'created', 'activates', 'sealsUntil', 'opensUntil', 'vouchers', 'ancestors', 'revoked', 'wraps'],
  ancestors: ['ids', 'mac'],
  revoked: ['at', 'by'],
  wrap: ['provider', 'keyId', 'wrapped', 'signature', 'mac'],
} as const;
const DAY_MS = 86_400_000;
const MOST = { bytes: 262_144, keys: 64, wraps: 16, macs: 8, lifeMs: 5 * 366 * DAY_MS, leadMs: 366 * DAY_MS };

type JsonObject = Readonly<Record<string, unknown>>;

/** The defects of a stored text; undefined if it is a document of the format. */
export function misshapen(text: string): string | undefined {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return 'no JSON';
  }
  if (text.length > MOST.bytes) return 'over 256 KiB';
  // White space, a name twice, or any other spelling of the same content.
  if (JSON.stringify(document) !== text) return 'another spelling';
  const { keys } = membersOf(document);
  if (!Array.isArray(keys)) return 'no keys';
  if (keys.length > MOST.keys) return `${keys.length} keys`;
  return unknownMember('document', document) ?? first(keys, misshapenKey);
}

function misshapenKey(key: unknown): string | undefined {
  const { created, activates, opensUntil, vouchers, ancestors, revoked, wraps } = membersOf(key);
  const unknown =
    unknownMember('key', key) ?? unknownMember('ancestors', ancestors) ?? unknownMember('revoked', revoked);
  if (unknown !== undefined) return unknown;
  if (!Array.isArray(wraps) || wraps.length === 0 || wraps.length > MOST.wraps) return 'wraps';
  for (const macs of [vouchers, membersOf(revoked)['by']]) {
    if (Object.keys(membersOf(macs)).length > MOST.macs) return 'more than 8 vouchers or certificates';
  }
  const [from, active, until] = [created, activates, opensUntil].map((time) => Date.parse(String(time)));
  if (from === undefined || active === undefined || until === undefined) return 'times';
  if (!(until - from <= MOST.lifeMs)) return 'the life of a key is too long';
  if (!(Math.abs(active - from) <= MOST.leadMs)) return 'a key becomes active too early or too late';
  return first(wraps, (wrap) => unknownMember('wrap', wrap));
}

function unknownMember(kind: keyof typeof MEMBERS, value: unknown): string | undefined {
  const known: readonly string[] = MEMBERS[kind];
  const unknown = Object.keys(membersOf(value)).find((name) => !known.includes(name));
  return unknown === undefined ? undefined : `an unknown property ${JSON.stringify(unknown)}`;
}

function membersOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

function first<T>(values: readonly T[], find: (value: T) => string | undefined): string | undefined {
  return values.map(find).find((found) => found !== undefined);
}
