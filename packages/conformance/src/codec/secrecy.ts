import { text } from '../bytes.ts';
import { type CheckedRequirement, expectThat, must, NotApplicable, should } from '../requirement.ts';
import { encodings } from '../secrets.ts';
import { decodings } from './decodings.ts';
import { KIT } from './sources.ts';
import type { CodecTrial } from './trial.ts';

const MANY_SEALS = 10_000;
/** Where sealing is slow the time decides, milliseconds. */
const SEALING_MS = 4_000;
/** Payloads of one length, sealed so often, have tokens of some length in common, unless the length follows the content. */
const SEALS_OF_A_LENGTH = 20;
/** A block of AES, bytes. */
const WINDOW = 16;
/** A quarter of what a payload of 1 024 bytes would give away. */
const MOST_REPEATS = 256;

/** What a token gives away; only where the target claims that it hides its payload. */
export const SECRECY_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  must(
    'CODEC-REPEATS',
    'Of many seals of one payload none comes again after another one.',
    'NIST SP 800-38D, section 8',
    async (trial) => {
      confidential(trial);
      const codec = await trial.create();
      const payload = trial.text('state');
      // One token for all is no repetition, nor is one for every second.
      const seen = new Set<string>();
      let last = '';
      const until = performance.now() + SEALING_MS;
      for (let i = 1; i <= MANY_SEALS && performance.now() < until; i++) {
        const token = trial.seal(codec, payload);
        expectThat(token === last || !seen.has(token), `after ${i} seals of one payload a token came again`);
        seen.add(token);
        last = token;
      }
    },
  ),
  should('CODEC-DISTINCT', 'Two seals of one payload differ.', KIT, async (trial) => {
    confidential(trial);
    const codec = await trial.create();
    const payload = trial.text('state');
    expectThat(
      trial.seal(codec, payload) !== trial.seal(codec, payload),
      'two seals of one payload are alike: whoever sees both knows that',
    );
  }),
  must('CODEC-CONFIDENTIAL', 'The payload cannot be read in the token, in any usual encoding.', KIT, async (trial) => {
    confidential(trial);
    const codec = await trial.create();
    for (let i = 0; i < 5; i++) {
      const canary = text(Buffer.from(trial.random.bytes(12)).toString('hex'));
      if (!trial.fits(canary)) throw new NotApplicable('its payloads are too short to be recognised');
      const token = trial.seal(codec, canary);
      const readable = [token, ...decodings(token).map((bytes) => Buffer.from(bytes).toString('latin1'))];
      const forms = [...encodings(canary), Buffer.from(canary.toReversed()).toString('latin1')];
      expectThat(
        !readable.some((one) => forms.some((form) => one.includes(form))),
        'the payload can be read in the token',
      );
    }
  }),
  must(
    'CODEC-PATTERN',
    'Repetitions in payloads do not show in tokens.',
    'NIST SP 800-38A, sections 5.3 and 6.1',
    async (trial) => {
      confidential(trial);
      const [short, long] = [1_024, 1_040];
      if (!trial.fits(new Uint8Array(long))) throw new NotApplicable('its payloads are too short to show a pattern');
      const codec = await trial.create();
      const repeats = (...payloads: Uint8Array[]): number => repetitions(payloads.map((one) => trial.seal(codec, one)));
      // What repeats whatever the payload: a header, padding outside.
      const always = repeats(trial.random.bytes(short), trial.random.bytes(long));
      const zeros = repeats(new Uint8Array(short), new Uint8Array(long)) - always;
      expectThat(
        zeros <= MOST_REPEATS,
        `the tokens of ${short} and ${long} zeros repeat themselves in ${zeros} places`,
      );
      const head = trial.random.bytes(short - WINDOW);
      const [one, two] = [WINDOW, 2 * WINDOW].map((length) => Buffer.concat([head, trial.random.bytes(length)]));
      const shared = repeats(one ?? head, two ?? head) - always;
      expectThat(shared <= MOST_REPEATS, `the tokens of payloads that begin alike are alike in ${shared} places`);
    },
  ),
  must(
    'CODEC-NO-COMPRESSION',
    'Payloads of one length have tokens of one length.',
    'CRIME and BREACH: compression before encryption',
    async (trial) => {
      confidential(trial);
      const codec = await trial.create();
      for (const length of [64, 1_000, 16_000].filter((one) => one <= trial.subject.supports.maxPayloadBytes)) {
        const lengths = (payload: () => Uint8Array): [number, number] => {
          const all = Array.from({ length: SEALS_OF_A_LENGTH }, () => trial.seal(codec, payload()).length);
          return [Math.min(...all), Math.max(...all)];
        };
        const flat = lengths(() => new Uint8Array(length));
        const mixed = lengths(() => trial.random.bytes(length));
        // Padding of random length may differ as it likes, but not with the content.
        expectThat(
          flat[1] >= mixed[0] && mixed[1] >= flat[0],
          `${length} equal bytes make ${flat[1]} characters at most, ${length} random ones ${mixed[0]} at least: how well a secret compresses shows`,
        );
      }
    },
  ),
];

export function confidential(trial: CodecTrial): void {
  if (!trial.subject.supports.confidentiality) throw new NotApplicable('supports.confidentiality is false');
}

/** How many pieces of tokens, in bytes, stood in them before. */
function repetitions(tokens: readonly string[]): number {
  const forms = tokens.map((token) => decodings(token));
  const counts = (forms[0] ?? []).map((_, form) => {
    const seen = new Set<string>();
    let again = 0;
    for (const bytes of forms.map((one) => Buffer.from(one[form] ?? []))) {
      for (let at = 0; at + WINDOW <= bytes.length; at++) {
        const piece = bytes.toString('latin1', at, at + WINDOW);
        if (seen.has(piece)) again += 1;
        seen.add(piece);
      }
    }
    return again;
  });
  return Math.max(0, ...counts);
}
