import { publicEncrypt, randomBytes } from 'node:crypto';
import { localKeyWrapper } from '@sealring/core';
import type { KeyWrapperTarget } from '../../src/index.ts';
import {
  asText,
  DETERMINISTIC,
  GOOD_MEMORY,
  KEY_WRAP,
  type Make,
  OAEP,
  PUBLIC_KEY,
  remembering,
  SOUND,
  type Steps,
  signing,
  soundKeyWrapper,
  zooTarget,
} from './zoo-key-wrapper.ts';

/** A key wrapper that must pass completely. */
export interface SoundKeyWrapper {
  readonly target: KeyWrapperTarget;
  /** Warnings that it may cause. */
  readonly warnings: readonly string[];
}

const local = (): KeyWrapperTarget => {
  const [a, b] = [randomBytes(32), randomBytes(32)];
  return {
    name: 'local',
    create: () => ({ keyWrapper: localKeyWrapper({ masterKey: a }) }),
    createOtherKey: () => ({ keyWrapper: localKeyWrapper({ masterKey: b }) }),
    supports: { remote: false },
  };
};

/** A key wrapper without optional members. */
function bare(steps: Partial<Steps> = {}): Make {
  return (world) => {
    const { provider, keyId, supports, wrap, unwrap } = soundKeyWrapper(steps)(world);
    return { provider, keyId, supports, wrap, unwrap };
  };
}

const signs = signing();
const TARGETS: readonly KeyWrapperTarget[] = [
  local(),
  zooTarget('all optional members', soundKeyWrapper()),
  zooTarget('no optional members', bare(), { control: {} }),
  zooTarget('deterministic', soundKeyWrapper(DETERMINISTIC)),
  zooTarget('deterministic, as text', soundKeyWrapper(asText({ ...SOUND, ...DETERMINISTIC }))),
  zooTarget('caches unwraps, but checks with the service first', remembering()),
  zooTarget(
    'works after close',
    soundKeyWrapper({
      async ask(world, operation, signal, fail) {
        await SOUND.ask({ ...world, isClosed: false }, operation, signal, fail);
      },
    }),
  ),
  zooTarget(
    'returns cached unwraps after close',
    remembering({ ask: (world, signal) => GOOD_MEMORY.ask({ ...world, isClosed: false }, signal) }),
  ),
  zooTarget(
    'a service that accepts only short contexts of plain letters',
    soundKeyWrapper({
      checkOptions(options) {
        SOUND.checkOptions(options);
        const texts = Object.entries(options.context).flat();
        if (!texts.every((text) => /^[\w:.-]{0,64}$/.test(text))) throw new RangeError('not for a context');
      },
    }),
  ),
  zooTarget('AES key wrap, without a context', bare(KEY_WRAP)),
  zooTarget(
    'AES key wrap, for 64 bytes only',
    bare({
      ...KEY_WRAP,
      checkDataKey(dataKey, supports) {
        SOUND.checkDataKey(dataKey, supports);
        if (dataKey.length !== 64) throw new RangeError('64 bytes');
      },
    }),
  ),
  zooTarget('RSA with signatures', (world) => signs(soundKeyWrapper(PUBLIC_KEY)(world), world)),
  zooTarget(
    'RSA with leading zeros',
    soundKeyWrapper({
      ...PUBLIC_KEY,
      seal({ pair }, plaintext) {
        for (;;) {
          const bytes = publicEncrypt({ key: pair.publicKey, ...OAEP }, plaintext);
          if (bytes[0] === 0) return bytes;
        }
      },
    }),
    { supports: { signatures: false } },
  ),
  zooTarget('RSA in a trusted store', soundKeyWrapper(PUBLIC_KEY), { supports: { signatures: false } }),
  zooTarget(
    'a service that hides its versions',
    (world) => {
      const nameVersion: Steps['nameVersion'] = (_, key) => `${key.name}/1`;
      const open: Steps['open'] = (_, bytes, bound) => {
        const version = world.key.versions.find((one) => {
          try {
            return SOUND.open(one, bytes, bound);
          } catch {
            return false;
          }
        });
        return SOUND.open(version ?? world.key.current, bytes, bound);
      };
      return soundKeyWrapper({ nameVersion, open, supports: { context: true, authenticated: true } })(world);
    },
    { supports: { versions: false } },
  ),
  zooTarget(
    'a service that drops packets in an outage',
    soundKeyWrapper({
      async ask(world, operation, signal, fail) {
        await SOUND.ask({ ...world, isReachable: true }, operation, signal, fail);
        if (world.isReachable) return;
        await new Promise<void>((_, reject) => {
          const giveUp = (): void => reject(fail('unavailable', operation));
          setTimeout(giveUp, 50);
          signal?.addEventListener('abort', giveUp);
        });
      },
    }),
  ),
];

/** Key wrappers built in different ways. */
export const SOUND_KEY_WRAPPERS: readonly SoundKeyWrapper[] = TARGETS.map((target) => ({ target, warnings: [] }));
