import { inspect } from 'node:util';
import { KubeConfig } from '@kubernetes/client-node';
import { describe, expect, test } from 'vitest';
import { kubernetesRing } from '../src/index.ts';

const namespace = 'payments';
const name = 'payments-ring';
const client = { getCurrentCluster: () => null, applyToHTTPSOptions: async () => undefined };

describe('options of kubernetesRing', () => {
  test.each([
    ['nothing', undefined, 'options must be'],
    ['an unknown option', { namespace, name, secretName: 'x' }, 'secretName'],
    ['no namespace', { name }, 'namespace'],
    ['no name', { namespace }, 'name'],
    ['a name that is not a string', { namespace, name: 7 }, 'name'],
    ['a kind that is not a string', { namespace, name, kind: 1 }, 'kind'],
    ['a client of null', { namespace, name, client: null }, 'client must be a KubeConfig'],
    [
      'a client that cannot authenticate',
      { namespace, name, client: { getCurrentCluster: () => null } },
      'client must be a KubeConfig',
    ],
    [
      'a client without a cluster',
      { namespace, name, client: { applyToHTTPSOptions: async () => undefined } },
      'client must be a KubeConfig',
    ],
    ['callTimeoutSeconds as text', { namespace, name, callTimeoutSeconds: '5' }, 'callTimeoutSeconds'],
  ])('refuses %s with a TypeError', (_, options, words) => {
    const call = (): unknown => Reflect.apply(kubernetesRing, undefined, [options]);
    expect(call).toThrow(TypeError);
    expect(call).toThrow(new RegExp(`^kubernetesRing: .*${words}`));
  });

  const bounds: Readonly<Record<string, string>> = {
    namespace: 'a DNS label, 1 to 63',
    name: 'a DNS subdomain, 1 to 253',
    key: '1 to 253 letters, digits',
  };
  test.each([
    ['namespace', { namespace: '', name }],
    ['namespace', { namespace: 'Payments', name }],
    ['namespace', { namespace: 'a.b', name }],
    ['namespace', { namespace: 'a'.repeat(64), name }],
    ['namespace', { namespace: '../x', name }],
    ['name', { namespace, name: '' }],
    ['name', { namespace, name: 'a/b' }],
    ['name', { namespace, name: '-a' }],
    ['name', { namespace, name: 'a..b' }],
    ['name', { namespace, name: `${'a.'.repeat(126)}aa` }],
    ['name', { namespace, name: 'a'.repeat(254) }],
    ['name', { namespace, name: `${'a'.repeat(100)}-` }],
    ['kind', { namespace, name, kind: 'secret' }],
    ['key', { namespace, name, key: '' }],
    ['key', { namespace, name, key: '..' }],
    ['key', { namespace, name, key: '.' }],
    ['key', { namespace, name, key: 'a/b' }],
    ['callTimeoutSeconds', { namespace, name, callTimeoutSeconds: 0 }],
  ])('refuses a %s outside its bounds with a RangeError that names it: %j', (option, options) => {
    const call = (): unknown => Reflect.apply(kubernetesRing, undefined, [{ client, ...options }]);
    expect(call).toThrow(RangeError);
    expect(call).toThrow(`kubernetesRing: ${option} must be ${bounds[option] ?? ''}`);
  });

  test.each(['ring', '.ring', '..ring', 'A_b-9.'])('accepts the key %s', (key) => {
    expect(kubernetesRing({ namespace, name, key, client }).kind).toBe('kubernetes');
  });

  test.each([
    'a',
    'payments-ring',
    'a.b.c',
    `${'a'.repeat(63)}.`.repeat(3) + 'a'.repeat(61),
    'a'.repeat(253),
    'a.b-c-1',
  ])('accepts the name %s', (given) => {
    expect(kubernetesRing({ namespace, name: given, client }).kind).toBe('kubernetes');
  });

  test('shows no credentials when it is inspected', () => {
    const config = new KubeConfig();
    config.loadFromOptions({
      clusters: [{ name: 'c', server: 'https://127.0.0.1:1' }],
      users: [{ name: 'u', token: 'hunter2-token' }],
      contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
      currentContext: 'x',
    });
    const ring = kubernetesRing({ namespace, name, client: config });
    expect(inspect(ring, { depth: 9, showHidden: true })).not.toContain('hunter2');
  });
});
