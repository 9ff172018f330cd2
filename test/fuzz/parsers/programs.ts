import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bytes, internal, type Parser, text } from '../parser.ts';

interface ConfigFileModule {
  readonly loadConfigFile: (path: string, named: string) => Promise<unknown>;
}
interface LinesModule {
  readonly Lines: new (longest?: number) => { add(chunk: Buffer): Iterable<string>; rest(): string };
}
interface ProgramModule {
  readonly readObject: (line: string) => object | string;
}
interface AnswerModule {
  readonly readAnswer: (said: object, kinds: readonly string[], shown: () => string) => unknown;
  readonly readDates: (said: object) => unknown;
}

/** Files and output of programs that the command line and the conformance kit read. */
export async function programParsers(): Promise<readonly Parser[]> {
  return [await settingsFile(), await execLines()];
}

/**
 * A configuration is a module with any exports. The module is loaded once, and exports the input, as JSON; the text `ƒ`
 * represents a function.
 */
async function settingsFile(): Promise<Parser> {
  const { loadConfigFile } = await internal<ConfigFileModule>('cli/src/settings/config-file.ts');
  const folder = mkdtempSync(join(tmpdir(), 'sealring-fuzz-'));
  const path = join(folder, 'sealring.config.mjs');
  writeFileSync(path, 'export default () => globalThis.sealringFuzzedConfiguration;\n');
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const store = '{"read":"ƒ","write":"ƒ"}';
  return {
    name: 'settings-file',
    seeds: [
      `{"ring":${store},"keyWrapper":{"wrap":"ƒ","unwrap":"ƒ"},"ringName":"default"}`,
      `{"ring":${store},"keyWrapper":[{"wrap":"ƒ","unwrap":"ƒ"}],"probe":{"ring":${store},"remove":"ƒ"}}`,
      '{"ring":null,"keyWrapper":[]}',
    ].map(bytes),
    words: ['ƒ', '"ring":', '"keyWrapper":', '"probe":', '"policy":', 'null', '[]', '{}', '__proto__', 'then'],
    refuses: (error) => error.name === 'SyntaxError' || error.constructor.name === 'UsageError',
    parse: async (input) => {
      const value: unknown = JSON.parse(text(input), (_key, item: unknown) => (item === 'ƒ' ? () => undefined : item));
      Reflect.set(globalThis, 'sealringFuzzedConfiguration', value);
      await loadConfigFile(path, '--config');
    },
  };
}

/** Answers to the requests of a run: of a codec, then of a key wrapper and a ring store. */
const ASKED = [
  [],
  ['token'],
  ['payload', 'invalid'],
  ['wrapped', 'failure'],
  ['generated', 'failure'],
  ['stored', 'absent', 'failure'],
  ['target'],
];

/** The output of a program that speaks the kit's exec protocol, in two pieces. */
async function execLines(): Promise<Parser> {
  const { Lines } = await internal<LinesModule>('conformance/src/exec/lines.ts');
  const { readObject } = await internal<ProgramModule>('conformance/src/exec/program.ts');
  const { readAnswer, readDates } = await internal<AnswerModule>('conformance/src/exec/answer.ts');
  return {
    name: 'exec-lines',
    seeds: [
      '{"id":1}\n{"id":2,"token":"v1.AAAA"}\n{"id":3,"payload":"AAEC"}\n{"id":4,"error":"no such role"}\n',
      '{"id":1,"token":null}\n{"id":2,"error":"no \\u0001 such key"}\n{"id":3,"invalid":"seal"}\n',
      '{"id":1,"token":null}\n{"id":2,"token":""}\n{"id":3,"payload":""}\n{"id":4,"wrapped":{"provider":"p","keyId":"k","wrapped":"AAEC"}}\n' +
        '{"id":5,"failure":{"kind":"denied"},"dates":[1,2.5]}\n{"id":6,"stored":{"document":"{}","revision":"1"}}\n{"id":7,"target":{"can":["break"]}}\n',
    ].map(bytes),
    words: [
      '"id":',
      '"token":',
      '"payload":',
      '"invalid":',
      '"error":',
      '"failure":',
      '"wrapped":',
      '"dates":',
      'null',
      '\n',
      '\r\n',
      '\u001b[31m',
      '__proto__',
    ],
    // The first two are the refusals of a line that is too long, or not UTF-8.
    refuses: (error) =>
      (error instanceof RangeError && error.message.startsWith('a line of more than')) ||
      (error instanceof TypeError && 'code' in error && error.code === 'ERR_ENCODING_INVALID_ENCODED_DATA') ||
      error.name === 'WrongAnswer',
    parse: (input) => {
      const lines = new Lines(4_096);
      const middle = input.length >> 1;
      let count = 0;
      for (const half of [input.subarray(0, middle), input.subarray(middle)]) {
        for (const line of lines.add(Buffer.from(half))) {
          const said = readObject(line);
          if (typeof said === 'string') throw Object.assign(new Error(said), { name: 'WrongAnswer' });
          readAnswer(said, ASKED[count % ASKED.length] ?? [], () => line);
          readDates(said);
          count += 1;
        }
      }
      lines.rest();
    },
  };
}
