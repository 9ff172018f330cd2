import { McpServer } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import {
  createProtectedMcpServer,
  createRequestStateCodec,
  memorySingleUse,
  protectRequestState,
  RequestStateSecurity,
} from '../src/index.ts';
import { createMcpdRequestStateCodec, createMcpdRequestStateSecurity } from '../src/mcpd/index.ts';

/*
 * Each message names the function, the option and the given value. It shows a number or a boolean itself, but only the
 * kind of any other value, which may be a secret.
 */
const INFO = { name: 'refund-desk', version: '1.0.0' };
const KEY = 'a key of thirty-two bytes or more, for tests';
const codec = new AesGcmRequestStateCodec([KEY]);
const security = new RequestStateSecurity({ codec });

const policy = (options: unknown) => () => Reflect.construct(RequestStateSecurity, [options]);
const states = (options: unknown) => () => Reflect.apply(createRequestStateCodec, undefined, [options]);
const mcpd = (options: unknown) => () => Reflect.apply(createMcpdRequestStateCodec, undefined, [options]);
const protect = (...given: unknown[]) => {
  return () => Reflect.apply(protectRequestState, undefined, given);
};

describe('a message about a wrong value (F21)', () => {
  test.each<[unknown, string]>([
    [null, 'null'],
    [5, '5'],
    [Number.NaN, 'NaN'],
    [true, 'true'],
    [['canary', 'canary'], 'an array of 2'],
    [Buffer.from('canary'), '6 bytes'],
    [{ canary: 'canary' }, 'an object'],
    [() => 'canary', 'a function'],
    [Symbol('canary'), 'a symbol'],
    [10n, 'a bigint'],
  ])('shows %o as %s', (audience, shown) => {
    const wrong = policy({ codec, audience });
    expect(wrong).toThrow(new TypeError(`RequestStateSecurity: audience must be a string, got ${shown}`));
  });

  test('a message never quotes a string', () => {
    const wrong = policy({ codec, bindPrincipal: 'canary' });
    expect(wrong).toThrow(
      new TypeError('RequestStateSecurity: bindPrincipal must be a function or null, got a string'),
    );
  });
});

describe('a message about a wrong option', () => {
  const cases: readonly (readonly [() => unknown, string])[] = [
    [policy(undefined), 'RequestStateSecurity: options must be an object, got undefined'],
    [policy(null), 'RequestStateSecurity: options must be an object, got null'],
    [policy([codec]), 'RequestStateSecurity: options must be an object, got an array of 1'],
    [policy({ keys: KEY }), 'RequestStateSecurity: keys must be an array, got a string'],
    [policy({}), 'RequestStateSecurity: exactly one of keys and codec is required, got neither'],
    [policy({ codec, keys: [KEY] }), 'RequestStateSecurity: exactly one of keys and codec is required, got both'],
    [policy({ codec, ttlSeconds: '5' }), 'RequestStateSecurity: ttlSeconds must be a number, got a string'],
    [policy({ codec, singleUse: null }), 'RequestStateSecurity: singleUse must have a claim method, got null'],
    [policy({ codec, singleUse: {} }), 'RequestStateSecurity: singleUse must have a claim method, got an object'],
    [
      policy({ codec, singleUse: { claim: () => true, clockSkewSeconds: '5' } }),
      'RequestStateSecurity: singleUse.clockSkewSeconds must be a number, got a string',
    ],
    [policy({ codec: null }), 'RequestStateSecurity: codec must have seal and unseal, got null'],
    [() => memorySingleUse(Object({ maxTokens: '5' })), 'memorySingleUse: maxTokens must be a number, got a string'],
    [states({ codec: {} }), 'createRequestStateCodec: codec must have seal and unseal, got an object'],
    [
      states({ key: KEY, alsoAccept: KEY }),
      'createRequestStateCodec: alsoAccept must have seal and unseal, got a string',
    ],
    [states({}), 'createRequestStateCodec: exactly one of key and codec is required, got neither'],
    [states({ key: KEY, codec }), 'createRequestStateCodec: exactly one of key and codec is required, got both'],
    [states({ key: KEY, bind: 5 }), 'createRequestStateCodec: bind must be a function, got 5'],
    [states({ key: KEY, wire: 'signed' }), 'createRequestStateCodec: wire requires a codec, in codec or alsoAccept'],
    [
      states({ codec, alsoAccept: 5 }),
      'createRequestStateCodec: with codec, alsoAccept must be a Uint8Array or a string, got 5',
    ],
    [states({ codec, wire: 1 }), 'createRequestStateCodec: wire must be one of sealed, signed, got 1'],
    [
      states({ key: KEY, alsoAccept: codec, wire: 1 }),
      'createRequestStateCodec: wire must be one of sealed, signed, got 1',
    ],
    [states({ codec, wire: 'signed' }), 'createRequestStateCodec: codec must be made by createKmsCodec'],
    [
      states({ key: KEY, alsoAccept: codec, wire: 'signed' }),
      'createRequestStateCodec: alsoAccept must be made by createKmsCodec',
    ],
    [
      () => Reflect.apply(createMcpdRequestStateSecurity, undefined, [{ key: KEY, subject: 5 }]),
      'createMcpdRequestStateSecurity: subject must be a function, got 5',
    ],
    [mcpd({ key: KEY, mode: 1 }), 'createMcpdRequestStateCodec: mode must be one of signed, encrypted, got 1'],
    [
      mcpd({ key: KEY, binding: 1 }),
      'createMcpdRequestStateCodec: binding must be one of authSubject, none, authSubjectAndTool, got 1',
    ],
    [mcpd({ key: KEY, revision: 1 }), 'createMcpdRequestStateCodec: revision must be one of current, 2026-06, got 1'],
    [mcpd({ key: 32 }), 'createMcpdRequestStateCodec: key must be a Uint8Array or a string, got 32'],
    [mcpd({ codec }), 'createMcpdRequestStateCodec: codec must be made by createKmsCodec, got an object'],
    [
      mcpd({ key: KEY, alsoAccept: 5 }),
      'createMcpdRequestStateCodec: alsoAccept must be made by createKmsCodec, got 5',
    ],
    [mcpd({ alsoAccept: KEY }), 'createMcpdRequestStateCodec: alsoAccept requires key or codec'],
    [mcpd({ codec, revision: 'current' }), 'revision requires a fixed key, in key or alsoAccept'],
    [mcpd({ key: KEY, allowEphemeral: 5 }), 'createMcpdRequestStateCodec: allowEphemeral must be a boolean, got 5'],
    [mcpd({ key: `${KEY}\ud800` }), 'createMcpdRequestStateCodec: key must not contain a lone surrogate'],
    [mcpd({ key: KEY, ttlSeconds: '5' }), 'createMcpdRequestStateCodec: ttlSeconds must be a number, got a string'],
    [
      () => Reflect.apply(createMcpdRequestStateSecurity, undefined, [{ key: KEY, onReject: 5 }]),
      'createMcpdRequestStateSecurity: onReject must be a function, got 5',
    ],
  ];
  test.each(cases.map(([attempt, message]) => [message, attempt] as const))(
    'a TypeError names the option: %s',
    (message, attempt) => {
      expect(attempt).toThrow(TypeError);
      expect(attempt).toThrow(message);
    },
  );

  const outOfRange: readonly (readonly [() => unknown, string])[] = [
    [policy({ codec, onInvalid: 'ignore' }), 'onInvalid must be one of reject, re-elicit, re-elicit-any, got "ignore"'],
    [policy({ codec, ttlSeconds: 0 }), 'ttlSeconds must be a finite number above 0, got 0'],
    [mcpd({ key: KEY, ttlSeconds: 0.5 }), 'ttlSeconds must be a whole number above 0, got 0.5'],
    [mcpd({ key: KEY, mode: 'plain' }), 'mode must be one of signed, encrypted, got "plain"'],
  ];
  test.each(outOfRange.map(([attempt, message]) => [message, attempt] as const))(
    'a RangeError names the option: %s',
    (message, attempt) => {
      expect(attempt).toThrow(RangeError);
      expect(attempt).toThrow(message);
    },
  );
});

describe('arguments of protectRequestState and createProtectedMcpServer', () => {
  const server = new McpServer(INFO);
  test.each<[string, () => unknown, string]>([
    ['no server', protect(undefined, security), 'protectRequestState: server must be an McpServer or Server'],
    ['an object', protect({}, security), 'got an object'],
    [
      'a server with only one method',
      protect({ setRequestHandler: () => {} }, security),
      'server must be an McpServer or Server',
    ],
    [
      'no policy',
      protect(server),
      'security must be a RequestStateSecurity, such as new RequestStateSecurity({ codec }), got undefined',
    ],
    [
      'null as a policy',
      protect(server, null),
      'security must be a RequestStateSecurity, such as new RequestStateSecurity({ codec }), got null',
    ],
    [
      'a string as a policy',
      protect(server, 'canary'),
      'security must be a RequestStateSecurity, such as new RequestStateSecurity({ codec }), got a string',
    ],
    [
      'an object that only looks like a policy',
      protect(server, { codec }),
      'security must be a RequestStateSecurity, such as new RequestStateSecurity({ codec }), got an object',
    ],
    [
      'an audience that is not a string',
      protect(server, security, { defaultAudience: 5 }),
      'defaultAudience must be a string or null, got 5',
    ],
    [
      'a server of the SDK 1.x',
      protect({ setRequestHandler: () => {}, assertCanSetRequestHandler: () => {}, connect: () => {} }, security),
      'protectRequestState: server belongs to the MCP SDK 1.x (@modelcontextprotocol/sdk), which has no requestState',
    ],
    [
      'a server without a name',
      () => Reflect.apply(createProtectedMcpServer, undefined, [{ McpServer, serverInfo: {}, security }]),
      'createProtectedMcpServer: serverInfo.name must be a string, got undefined',
    ],
    [
      'a verify hook',
      () => {
        const serverOptions = { requestState: { verify: () => undefined } };
        return createProtectedMcpServer({ McpServer, serverInfo: INFO, security, serverOptions });
      },
      'createProtectedMcpServer: serverOptions.requestState.verify must be left out: it would get the sealed token',
    ],
    [
      'no class',
      () => Reflect.apply(createProtectedMcpServer, undefined, [{ McpServer: undefined, serverInfo: INFO, security }]),
      'createProtectedMcpServer: McpServer must be a class of the SDK, got undefined',
    ],
  ])('%s is rejected', (_name, attempt, message) => {
    expect(attempt).toThrow(TypeError);
    expect(attempt).toThrow(message);
  });
});

describe('arguments of mcp.d’s codec', () => {
  const [bound, free] = (['authSubjectAndTool', 'none'] as const).map((binding) =>
    createMcpdRequestStateCodec({ key: KEY, binding }),
  );
  test.each<[unknown, unknown, string]>([
    [bound, undefined, 'who must be an object, got undefined'],
    [bound, null, 'who must be an object, got null'],
    [bound, 'alice', 'who must be an object, got a string'],
    [bound, { target: 't' }, 'who.subject must be a string, got undefined'],
    [bound, { subject: 'alice' }, 'who.target must be a string, got undefined'],
    [free, { subject: 7 }, 'who.subject must be a string, got 7'],
  ])('encode and decode reject requester %#', (made, who, message) => {
    const { encode, decode } = Object(made);
    for (const attempt of [() => encode('1', who), () => decode('v1.', who)]) {
      expect(attempt).toThrow(TypeError);
      expect(attempt).toThrow(message);
    }
  });

  const june = createMcpdRequestStateCodec({ key: KEY, revision: '2026-06' });
  test.each<[unknown, string, string]>([
    [5, 'alice', 'state must be a string, got 5'],
    ['', 'alice', 'state must not be empty; send no requestState instead'],
    ['\ud800', 'alice', 'state must not contain a lone surrogate'],
    ['x'.repeat(200_000), 'alice', 'a token must not have more than 262144 characters, got '],
    [
      '1',
      'u\ud800',
      'who.subject and who.target must not contain lone surrogates, and who.subject must not contain a zero byte',
    ],
    ['1', '{', 'who.subject must not start with {, because revision 2026-06 could take it for a payload'],
  ])('encode rejects state and subject %#, and gives the reason', (state, subject, message) => {
    expect(() => Object(june).encode(state, { subject })).toThrow(`createMcpdRequestStateCodec: ${message}`);
  });
});
