import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { createRequestStateCodec } from '@sealring/mcp';
import { createMcpdRequestStateCodec } from '@sealring/mcp/mcpd';
import { bytes, Fault, fuzzKey, internal, type Parser, text } from '../parser.ts';
import { frozen as clock, NOW_MS } from './tokens.ts';

const NOW = NOW_MS / 1_000;
const who = { subject: 'user-1', target: 'refund' };
const JSON_WORDS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\u0000',
  '\\ud800',
  'null',
  'true',
  '__proto__',
  'constructor',
  '[[[[[[[[',
];
const words = [
  ...JSON_WORDS,
  '"exp":',
  '"iat":',
  '"v":1',
  '"m":',
  '"t":',
  '"a":',
  '"s":',
  '"aud":',
  '"p":',
  '"j":',
  '"b":',
];
const never = (): boolean => false;

interface ClaimsModule {
  readonly mintClaims: (input: object) => Uint8Array;
  readonly readClaims: (payload: Uint8Array, expected: object) => { readonly principal: unknown };
  readonly checkPrincipal: (claim: unknown, principal: string | null) => void;
}
interface IdentityModule {
  readonly requestIdentity: (method: string, params: unknown) => { readonly digest: string };
}
interface PrincipalModule {
  readonly principalClaim: (principal: string, salt: Uint8Array) => string;
}
interface McpdModule {
  readonly deriveMcpdKeys: (secret: KeyObject, revision: string) => { readonly payload: KeyObject };
}

/** The input of an MCP server's boundary: tokens of the three implementations, and their contents. */
export async function boundaryParsers(): Promise<readonly Parser[]> {
  return [...(await claims()), ...(await mcpd()), ...(await typescript())];
}

async function claims(): Promise<readonly Parser[]> {
  const { mintClaims, readClaims, checkPrincipal } = await internal<ClaimsModule>('mcp/src/boundary/claims.ts');
  const { requestIdentity } = await internal<IdentityModule>('mcp/src/boundary/request-identity.ts');
  const { principalClaim } = await internal<PrincipalModule>('mcp/src/boundary/principal-claim.ts');
  const params = { name: 'refund', arguments: { order: 17, amount: 1.5, note: 'é' } };
  const identity = requestIdentity('tools/call', params);
  const expected = { nowSeconds: NOW, futureSkewSeconds: 60, identity, audience: 'shop' };
  const common = { nowSeconds: NOW, ttlSeconds: 600, identity, state: '{"step":2}', audience: 'shop' };
  const principal = principalClaim('user-1', fuzzKey('salt').subarray(0, 8));
  return [
    {
      name: 'claims',
      seeds: [
        mintClaims({ ...common, principal, id: null }),
        mintClaims({ ...common, principal, id: 'AAAAAAAAAAAAAAAAAAAAAA' }),
        mintClaims({ ...common, principal: null, id: null }),
        mintClaims({ ...common, audience: null, principal: null, id: null }),
      ],
      words: [...words, `"p":"${principal}"`],
      refuses: (error) => error.constructor.name === 'Refusal',
      parse: (input) => checkPrincipal(readClaims(input, expected).principal, 'user-1'),
    },
    {
      name: 'request-identity',
      seeds: [
        '{}',
        JSON.stringify(params),
        '{"uri":"file:///a","name":"","arguments":[]}',
        '{"name":"x","arguments":{"a":[{"b":1e21}]}}',
      ].map(bytes),
      words: [...words, '"name":', '"arguments":', '"uri":'],
      refuses: (error) =>
        (error instanceof TypeError &&
          /^(?:not a JSON value|the target of the request is not a string)/.test(error.message)) ||
        (error instanceof RangeError && error.message.startsWith('the JSON is nested deeper')),
      parse: (input) => {
        const value = parsed(text(input));
        for (const method of ['tools/call', 'prompts/get', 'resources/read']) requestIdentity(method, value);
      },
    },
  ];
}

async function mcpd(): Promise<readonly Parser[]> {
  const { deriveMcpdKeys } = await internal<McpdModule>('mcp/src/mcpd/wire.ts');
  const key = fuzzKey('mcp.d secret');
  const codecs = (['signed', 'encrypted'] as const).flatMap((mode) =>
    (['current', '2026-06'] as const).map((revision) => createMcpdRequestStateCodec({ key, mode, revision, clock })),
  );
  const tokens = codecs.flatMap((codec) => ['x', '{"step":2}', 'ü'].map((state) => codec.encode(state, who)));
  const [signed] = codecs;
  const signer = deriveMcpdKeys(createSecretKey(key), 'current').payload;
  const signedOf = (payload: Uint8Array): string =>
    `v1.${Buffer.from(payload).toString('base64url')}.${createHmac('sha256', signer).update(payload).digest('base64url')}`;
  return [
    {
      name: 'mcpd-token',
      seeds: tokens.map(bytes),
      words: ['v1.', 'v1e.', '.', '_-'],
      // It says null.
      refuses: never,
      parse: (input) => codecs.map((codec) => checkState(codec.decode(text(input), who))),
    },
    {
      name: 'mcpd-payload',
      seeds: tokens.slice(0, 3).map((token) => Buffer.from(token.split('.')[1] ?? '', 'base64url')),
      words,
      refuses: never,
      parse: (input) => signed?.decode(signedOf(input), who),
    },
  ];
}

async function typescript(): Promise<readonly Parser[]> {
  const key = fuzzKey('typescript secret');
  const codec = createRequestStateCodec({ key, ttlSeconds: 600, bind: () => 'user-1', clock });
  const unbound = createRequestStateCodec({ key, ttlSeconds: 600, clock });
  const context = {} as Parameters<typeof codec.verify>[1];
  const tokens = await Promise.all(
    [codec, unbound].flatMap((one) => [{ step: 2 }, 'ü', null].map((state) => one.mint(state, context))),
  );
  const signedOf = (envelope: Uint8Array): string => {
    const signed = `v1.${Buffer.from(envelope).toString('base64url')}`;
    return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
  };
  const refuses = (error: Error): boolean => /^(?:malformed|mac|expired|bind)$/.test(error.message);
  return [
    {
      name: 'typescript-token',
      seeds: tokens.map(bytes),
      words: ['v1.', '.', '_-'],
      refuses,
      parse: (input) => codec.verify(text(input), context),
    },
    {
      name: 'typescript-envelope',
      seeds: tokens.map((token) => Buffer.from(token.split('.')[1] ?? '', 'base64url')),
      words,
      refuses,
      parse: (input) => codec.verify(signedOf(input), context),
    },
  ];
}

function checkState(state: string | null): void {
  if (state !== null && !['x', '{"step":2}', 'ü'].includes(state))
    throw new Fault('unsealed a payload that was never sealed');
}

/** Invalid JSON never reaches the boundary. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
}
