import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { Progress } from '../src/cli/terminal.ts';
import { CODEC_REQUIREMENTS, type ConformanceReport } from '../src/index.ts';
import { isRunning, MAIN, runCli } from './cli-process.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'sealring-cli-'));
afterAll(() => rmSync(folder, { recursive: true }));
const inFolder = (name: string, content: string): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

function reportOf(text: string): ConformanceReport {
  const report: ConformanceReport = JSON.parse(text);
  return report;
}

const ONE = ['--only', 'CODEC-SYNCHRONOUS'];

describe('the exit code', () => {
  test('the exit code is 0 when every MUST passed, and the table, verdict and progress are printed', async () => {
    const { code, stdout, stderr } = await runCli(['codec', 'sound.ts']);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    for (const { id, level } of CODEC_REQUIREMENTS) expect(stdout).toMatch(new RegExp(`^${id} +${level} .* ms$`, 'm'));
    expect(stdout).toContain('a sound codec passes: every checked MUST holds.');
    expect(stderr).toMatch(new RegExp(`^0/${CODEC_REQUIREMENTS.length} ${CODEC_REQUIREMENTS[0]?.id} \\(\\d+ s\\)\n`));
    expect(`${stdout}${stderr}`).not.toContain('\u001b');
  });

  test('the exit code is 0 when only a SHOULD warned, and the finding is printed', async () => {
    const { code, stdout } = await runCli(['codec', 'colon.ts', '--only', 'CODEC-TOKEN-UNRESERVED', '--seed', '5']);
    expect(code).toBe(0);
    expect(stdout).toContain('CODEC-TOKEN-UNRESERVED warns (SHOULD)\n  A token');
    expect(stdout).toContain(
      'Repeat: npx sealring-conformance codec colon.ts --only CODEC-TOKEN-UNRESERVED --seed 5\n',
    );
  });

  test('the exit code is 1 when a MUST failed, and every report shows the failure', async () => {
    const id = 'CODEC-CANONICAL-LAST-CHAR';
    const [html, json] = ['deep/r.html', 'r.json'].map((name) => join(folder, name));
    const files = ['--report', html ?? '', '--json', json ?? ''];
    const { code, stdout } = await runCli([
      'codec',
      'lenient.ts',
      '--only',
      `${id},CODEC-PEER`,
      '--seed',
      '5',
      ...files,
    ]);
    expect(code).toBe(1);
    expect(stdout).toContain(`${id} fails (MUST)`);
    const report = reportOf(readFileSync(json ?? '', 'utf8'));
    expect(report).toMatchObject({ target: 'a lenient codec', suite: 'codec', passed: false, seed: 5 });
    expect(report.results.map((result) => [result.id, result.status])).toEqual([
      [id, 'fail'],
      ['CODEC-PEER', 'pass'],
    ]);
    expect(readFileSync(html ?? '', 'utf8')).toContain('a lenient codec fails: 1 of its MUSTs does not hold.');
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  test('the exit code is 130 on SIGINT; every report has the findings so far, and the target is closed', async () => {
    const [html, json] = [join(folder, 'cut.html'), join(folder, 'cut.json')];
    const args = ['codec', 'slow.ts', ...ONE, '--only', 'CODEC-PEER', '--report', html, '--json', json];
    const { code, stdout, stderr } = await runCli(args, {
      onStderr: (text, child) => {
        if (/ CODEC-(?!SYNCHRONOUS).*\n$/.test(text)) child.kill('SIGINT');
      },
    });
    expect({ code, stderr }).toMatchObject({ code: 130, stderr: expect.stringContaining('closed the target') });
    expect(stdout).toContain('a slow codec is undecided');
    const { passed, results } = reportOf(readFileSync(json, 'utf8'));
    expect({ passed, results }).toMatchObject({
      passed: false,
      results: [{ id: 'CODEC-SYNCHRONOUS', status: 'pass' }],
    });
    expect(readFileSync(html, 'utf8')).toContain('Not checked');
  });

  test('the exit code is 130 on SIGINT even if the target blocks the process', async () => {
    const { code, stdout } = await runCli(['codec', 'hangs.ts'], {
      onStderr: (_, child) => void setTimeout(() => child.kill('SIGINT'), 500).unref(),
    });
    expect(code).toBe(130);
    expect(stdout).toContain('is undecided');
  });
});

describe('a wrong command line', () => {
  const blocked = inFolder('blocked', '');
  // A link, so that a failing test does not replace a device.
  const device = join(folder, 'device');
  symlinkSync('/dev/null', device);
  const cases: readonly (readonly [args: readonly string[], error: RegExp])[] = [
    [['codec'], /a target module is missing/],
    [['codec', 'none.mjs'], /target module "none.mjs" does not exist/],
    [['codec', 'sound.py'], /"sound.py" must end in one of \.js, \.mjs, \.ts, \.mts/],
    [['codec', '.'], /"\." must end in/],
    [['codec', 'sound.ts', '--exec', 'node x'], /both a target module "sound.ts" and --exec "node x"/],
    [['codec', '--exec', ' '], /--exec needs a command, got ""/],
    [['codec', '--json', 'sound.ts'], /--json used "sound.ts" as its file/],
    [['codec', 'sound.ts', 'lenient.ts'], /too many arguments/],
    [['codec', 'sound.ts', '--sead', '1'], /unknown option '--sead'.*--seed/],
    [['codec', 'sound.ts', '--seed', '1.5'], /'--seed <n>' argument '1.5' is invalid.*from 0 to 2147483647/],
    [['codec', 'sound.ts', '--seed', '2147483648'], /'--seed <n>' argument '2147483648'/],
    [['codec', 'sound.ts', '--timeout', '0'], /'--timeout <seconds>' argument '0' is invalid.*0\.1 to 3600/],
    [['codec', 'sound.ts', '--timeout', '1e3'], /'--timeout <seconds>' argument '1e3'/],
    [['codec', 'sound.ts', '--only', 'CODEC-NONE'], /--only "CODEC-NONE" is not a requirement of the codec suite/],
    [['codec', 'sound.ts', '--only', 'codec-peer'], /--only "codec-peer"/],
    [['codec', 'sound.ts', '--only', ','], /'--only <id>' argument ',' is invalid.*name a requirement/],
    [['codec', 'sound.ts', '--only'], /'--only <id>' argument missing/],
    [['codec', 'sound.ts', '--rounds', '5'], /unknown option '--rounds'/],
    [['ring-store', 'sound.ts', '--writers', '1'], /'--writers <n>' argument '1' is invalid.*from 2 to 1000/],
    [['ring-store', 'sound.ts', '--rounds', 'x'], /'--rounds <n>' argument 'x' is invalid/],
    [['single-use', '--exec', 'x'], /unknown option '--exec'/],
    [['key-wrapper'], /a target module is missing/],
    [['codex'], /unknown command 'codex'.*codec/],
    [['list', 'codex'], /'codex' is invalid.*codec, key-wrapper, ring-store/],
    [['codec', 'sound.ts', '--report', join(blocked, 'r.html')], /--report ".*r\.html" cannot be written: E[A-Z]+/],
    [['codec', 'sound.ts', '--report', ''], /--report "" is not the name of a file/],
    [['codec', 'sound.ts', '--json='], /--json "" is not the name of a file/],
    [['codec', 'sound.ts', '--report', join(folder, 'none/')], /--report ".*none\/" is not the name of a file/],
    [['init', ''], /"" is not the name of a folder/],
    [['init', blocked], /cannot write to ".*blocked" \(EEXIST\)/],
    [['init', join(blocked, 'x')], /cannot write to ".*x" \(ENOTDIR\)/],
    [['codec', 'sound.ts', '--report', '.'], /--report "\." cannot be written: the path is not a regular file/],
    [['codec', 'sound.ts', '--json', device], /--json ".*device" cannot be written: the path is not a regular file/],
    [
      ['codec', 'sound.ts', '--report', join(folder, 'one'), '--json', join(folder, 'x', '..', 'one')],
      /--report and --json name the same file/,
    ],
  ];
  test.each(cases)('the wrong command line %j is reported in one line, with exit code 2', async (args, error) => {
    const { code, stdout, stderr } = await runCli(args);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^error: [^\n]+\n$/),
    });
    expect(stderr).toMatch(error);
  });

  test('a missing command prints the help', async () => {
    const { code, stderr } = await runCli([]);
    expect(code).toBe(2);
    expect(stderr).toContain('Usage: sealring-conformance');
  });
});

describe('a wrong target module', () => {
  const secret = 'hunter2';
  const cases: readonly (readonly [name: string, content: string, error: RegExp])[] = [
    ['no-target.mjs', 'export const codec = {};', /exports no target: export one as default or as target/],
    [
      'number.mjs',
      'export default 1;',
      /must be an object, a function that creates one, or a promise of one, got a number/,
    ],
    ['nothing.mjs', 'export default () => undefined;', /got undefined/],
    ['syntax.mjs', 'export default {', /cannot load .*syntax\.mjs: SyntaxError: /],
    ['import.mjs', "import 'not-there';", /cannot load .*ERR_MODULE|Cannot find package 'not-there'/],
    ['throws.mjs', `\nthrow new RangeError('${secret}');`, /cannot load .*throws\.mjs: RangeError in line 2\n$/],
    [
      'rejects.mjs',
      `export default async () => {\nthrow new Error('${secret}');\n};`,
      /could not be created: Error in line 2/,
    ],
    ['promise.mjs', `export default Promise.reject(new Error('${secret}'));`, /could not be created: Error in line 1/],
    ['promised-nothing.mjs', 'export const target = Promise.resolve();', /got undefined/],
    ['null.mjs', 'throw null;', /the module threw a value that is not an Error/],
    ['close.mjs', 'export default {};\nexport const close = 1;', /close must be a function/],
    ['exits.mjs', 'process.exit(0);', /could not be loaded: the target’s process ended with code 0/],
    ['members.mjs', 'export default { name: "x" };', /create is missing/],
    [
      'more.mjs',
      'const f = () => 1; export default { name: "x", create: f, createPeer: f, createStranger: f, x: 1 };',
      /"x"/,
    ],
  ];
  test.each(cases)(
    'the wrong target module %s is reported in one line, with exit code 2',
    async (name, content, error) => {
      const { code, stdout, stderr } = await runCli(['codec', inFolder(name, content), '--quiet', ...ONE]);
      expect({ code, stdout, stderr }).toEqual({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/^error: [^\n]+\n$/),
      });
      expect(stderr).toMatch(error);
      expect(stderr).not.toContain(secret);
    },
  );

  test('the program of a codec that does not start is reported in one line, with exit code 2', async () => {
    writeFileSync(join(folder, 'no-program'), '');
    const programs = [
      ['no-such-program x', /exit code 127 .*; it wrote to stderr: .*no-such-program.*/],
      [join(folder, 'no-program'), /exit code 126 .*; it wrote to stderr: .*no-program.*/],
      [String.raw`printf '\033[2Jno module\n' >&2; exit 1`, /exit code 1 .*; it wrote to stderr: no module\n/],
      ['kill -9 $$', /was ended by SIGKILL instead of answering \{"id":1,"op":"create",.*\}\n/],
      ['echo hello; cat', /the answer to \{"id":1,"op":"create",.*\} is not JSON: hello\n/],
    ] as const;
    for (const [exec, why] of programs) {
      const { code, stdout, stderr } = await runCli(['codec', '--exec', exec, '--json']);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^error: your program did not start: [^\n]+\n$/);
      expect(stderr).toMatch(why);
      expect(stderr).not.toMatch(/(?!\n)\p{Cc}/u);
    }
  });

  test.each(['key-wrapper', 'ring-store'])(
    'the program of a %s that does not start is reported in one line, with exit code 2',
    async (suite) => {
      const exec = String.raw`printf '\033[2Jno module\n' >&2; exit 1`;
      const { code, stdout, stderr } = await runCli([suite, '--exec', exec, '--json']);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^error: your program did not start: .*"op":"describe".*stderr: no module\n$/);
    },
  );

  test('a TypeScript module is reported if this version of Node.js does not strip types', async () => {
    const { code, stderr } = await runCli(['codec', 'sound.ts'], { nodeArgs: ['--no-experimental-strip-types'] });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: the target module "sound.ts" is TypeScript, which needs Node 22\.18, [^\n]+\n$/);
  });

  test('a run is reported as an error if --only leaves nothing to check', async () => {
    const { code, stderr } = await runCli([
      'key-wrapper',
      'sound-key-wrapper.ts',
      '--quiet',
      '--only',
      'WRAP-LENGTH-64',
    ]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: --only "WRAP-LENGTH-64" checked nothing: [^\n]+\n$/);
  });
});

describe('a target', () => {
  test('a target that blocks the process causes a finding, and the run continues', async () => {
    const args = ['codec', 'hangs.ts', '--timeout', '0.1', '--json', '--quiet'];
    const { code, stdout } = await runCli([...args, '--only', 'CODEC-PEER,CODEC-DISTINCT']);
    expect(code).toBe(1);
    expect(reportOf(stdout).results).toMatchObject([
      { id: 'CODEC-PEER', status: 'fail', detail: expect.stringMatching(/^did not end within \d+ ms.*\(seed \d+\)$/) },
      { id: 'CODEC-DISTINCT', status: 'pass' },
    ]);
  });

  test('a target that ends its process causes a finding, and the run continues', async () => {
    const args = ['codec', 'dies.ts', '--json', '--quiet', '--only', 'CODEC-PEER,CODEC-DISTINCT'];
    const { code, stdout } = await runCli(args);
    expect(code).toBe(1);
    expect(reportOf(stdout).results).toMatchObject([
      {
        id: 'CODEC-PEER',
        status: 'fail',
        detail: expect.stringContaining('the target’s process was ended by SIGKILL'),
      },
      { id: 'CODEC-DISTINCT', status: 'pass' },
    ]);
  });

  test('a target that ended its process and cannot be loaded again causes one finding per requirement', async () => {
    const note = JSON.stringify(join(folder, 'loaded'));
    const module = inFolder(
      'once.mjs',
      `import { existsSync, writeFileSync } from 'node:fs';
      if (existsSync(${note})) throw new RangeError('hunter2');
      writeFileSync(${note}, '');
      const create = () => ({ codec: { seal: () => 'x', unseal() { process.kill(process.pid, 'SIGKILL'); } } });
      export default { name: 'x', create, createPeer: create, createStranger: create };`,
    );
    const { code, stdout } = await runCli([
      'codec',
      module,
      '--json',
      '--quiet',
      '--only',
      'CODEC-STRANGER,CODEC-PEER',
    ]);
    expect(code).toBe(1);
    expect(reportOf(stdout).results).toMatchObject([
      { id: 'CODEC-STRANGER', detail: expect.stringContaining('the target’s process was ended by SIGKILL') },
      {
        id: 'CODEC-PEER',
        status: 'fail',
        detail: expect.stringMatching(/cannot load .*: RangeError in line 2 \(seed/),
      },
    ]);
    expect(stdout).not.toContain('hunter2');
  });

  test('a target that hangs ends when the command line is killed', async () => {
    const note = join(folder, 'pid');
    const hang = `writeFileSync(${JSON.stringify(note)}, String(process.pid)); while (true);`;
    const module = inFolder(
      'hangs-on.mjs',
      `import { writeFileSync } from 'node:fs';
      const create = () => ({ codec: { seal: () => 'x', unseal() { ${hang} } } });
      export default { name: 'x', create, createPeer: create, createStranger: create };`,
    );
    const { code } = await runCli(['codec', module, ...ONE], {
      onStart: async (child) => {
        await expect.poll(() => existsSync(note) && readFileSync(note, 'utf8')).toMatch(/^\d+$/);
        child.kill('SIGKILL');
      },
    });
    expect(code).toBe(null);
    const pid = Number(readFileSync(note, 'utf8'));
    await expect.poll(() => isRunning(pid)).toBe(false);
  });

  test('a target that is a promise is awaited', async () => {
    const { code, stdout } = await runCli(['codec', 'promised.mjs', '--quiet', '--only', 'CODEC-PEER,CODEC-WORKERS']);
    expect(code).toBe(0);
    expect(stdout).toContain('made passes');
  });

  test('a failure to close the target is printed as a note, and does not change the result', async () => {
    const { code, stderr } = await runCli(['codec', 'close-fails.mjs', '--quiet', ...ONE]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^note: closing the target failed: RangeError at close-fails\.mjs:5 was thrown$/m);
    expect(stderr).not.toContain('secret');
  });

  test('an error that a target throws outside any call causes a finding, without the text of the error', async () => {
    const { code, stdout, stderr } = await runCli(['codec', 'throws-later.ts', '--quiet', ...ONE]);
    expect(code).toBe(1);
    expect(stdout).toContain('uncaught error: RangeError at throws-later.ts:10 (seed ');
    expect(`${stdout}${stderr}`).not.toContain('secret');
  });

  test('a target cannot control the terminal with its name or errors', async () => {
    const { code, stdout } = await runCli(['codec', 'markup.ts', '--only', 'CODEC-PEER']);
    expect(code).toBe(1);
    expect(stdout).toContain(String.raw`<script>alert("1")</script> & \u0000\u001b[2J\ud800 ]]>\u202e`);
    expect(stdout).not.toMatch(/(?!\n)\p{Cc}/u);
  });
});

describe('every suite', () => {
  test('the module of a codec is also checked in worker threads', async () => {
    const { stdout } = await runCli(['codec', 'sound.ts', '--only', 'CODEC-WORKERS', '--json', '--quiet']);
    expect(reportOf(stdout).results).toMatchObject([{ id: 'CODEC-WORKERS', status: 'pass' }]);
  });

  test('--exec checks a program written in any language', async () => {
    const exec = `${process.execPath} ../exec/program.ts`;
    const { code, stdout } = await runCli(['codec', '--exec', exec, '--only', 'CODEC-PEER', '--json', '--quiet']);
    expect(code).toBe(0);
    expect(reportOf(stdout)).toMatchObject({ target: exec, results: [{ id: 'CODEC-PEER', status: 'pass' }] });
  });

  test.each([
    ['key-wrapper', 'WRAP-PEER', 'a key wrapper'],
    ['ring-store', 'RING-ROUNDTRIP', 'a ring store'],
  ])('--exec checks a %s written in any language', async (suite, only, target) => {
    const exec = `${process.execPath} ../exec/adapter.ts ${suite}`;
    const args = ['--only', only, '--json', '--quiet'];
    const sound = await runCli([suite, '--exec', exec, ...args]);
    expect(sound.code).toBe(0);
    expect(reportOf(sound.stdout)).toMatchObject({ target, suite, results: [{ id: only, status: 'pass' }] });
    const broken = await runCli([suite, '--exec', `${exec} crashes`, ...args]);
    expect(broken.code).toBe(1);
    expect(reportOf(broken.stdout).results[0]?.detail).toContain('the crash of a test');
  });

  test('--exec reports a program that ends, prints the command to repeat the check, and continues', async () => {
    const exec = `${process.execPath} ../exec/program.ts exits-silently`;
    const only = 'CODEC-PEER,CODEC-DISTINCT';
    const { code, stdout } = await runCli(['codec', '--exec', exec, '--only', only, '--seed', '1']);
    expect(code).toBe(1);
    expect(stdout).toContain(`Repeat: npx sealring-conformance codec --exec '${exec}' --only CODEC-PEER --seed 1\n`);
    expect(stdout).toMatch(/^CODEC-DISTINCT +SHOULD +holds/m);
  });

  test('--exec reports a program that does not restart after its process ended, and the run continues', async () => {
    const note = join(folder, 'came');
    const exec = `test -e '${note}' && exit 4; touch '${note}'; '${process.execPath}' ../exec/program.ts hangs-at-seal`;
    const only = 'CODEC-PEER,CODEC-STRANGER';
    const { code, stdout } = await runCli([
      'codec',
      '--exec',
      exec,
      '--only',
      only,
      '--timeout',
      '3',
      '--json',
      '--quiet',
    ]);
    expect(code).toBe(1);
    expect(reportOf(stdout).results).toMatchObject([
      { id: 'CODEC-STRANGER', status: 'fail', detail: expect.stringContaining('no answer within 3000 ms') },
      { id: 'CODEC-PEER', status: 'fail', detail: expect.stringContaining('exit code 4') },
    ]);
  });

  test('key-wrapper exits with 0 for a sound key wrapper and 1 for a broken one', async () => {
    const args = ['--only', 'WRAP-ROUNDTRIP', '--quiet', '--json'];
    const sound = await runCli(['key-wrapper', 'sound-key-wrapper.ts', ...args]);
    expect({ code: sound.code, report: reportOf(sound.stdout) }).toMatchObject({
      code: 0,
      report: { suite: 'key-wrapper', results: [{ id: 'WRAP-ROUNDTRIP', status: 'pass' }] },
    });
    const broken = await runCli(['key-wrapper', 'broken-key-wrapper.ts', ...args]);
    expect([broken.code, reportOf(broken.stdout).results[0]?.status]).toEqual([1, 'fail']);
  });

  test('ring-store exits with 0 for a sound store and 1 for a broken one, and accepts --rounds and --writers', async () => {
    const args = ['--only', 'RING-CAS-ONE-WINNER', '--quiet', '--rounds', '3', '--writers', '4', '--seed', '1'];
    const sound = await runCli(['ring-store', 'sound-ring-store.ts', ...args]);
    expect(sound.stdout).toMatch(/^a sound ring store passes/);
    expect(sound.code).toBe(0);
    const broken = await runCli(['ring-store', 'broken-ring-store.ts', ...args]);
    expect(broken.stdout).toContain('of 4 concurrent writers, 4 won');
    expect(broken.stdout).toContain(
      'broken-ring-store.ts --rounds 3 --writers 4 --only RING-CAS-ONE-WINNER --seed 1\n',
    );
    expect(broken.code).toBe(1);
  });

  test('a target with options that its suite does not accept is reported in one line', async () => {
    const { code, stderr } = await runCli(['ring-store', 'sound.ts', '--quiet']);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/^error: [^\n]+\n$/) });
  });
});

describe('output', () => {
  test('--json without a file prints only JSON on standard output, whatever a target prints', async () => {
    const { code, stdout, stderr } = await runCli(['codec', 'made.mjs', ...ONE, '--json']);
    expect(code).toBe(0);
    expect(reportOf(stdout).results.map(({ id }) => id)).toEqual(['CODEC-SYNCHRONOUS']);
    for (const part of ['printed by the target', 'closed the target', '0/1 CODEC-SYNCHRONOUS', 'made passes']) {
      expect(stderr).toContain(part);
    }
  });

  test('--quiet prints only the findings and the verdict', async () => {
    const { stdout, stderr } = await runCli(['codec', 'sound.ts', ...ONE, '--quiet', '--seed', '1']);
    expect({ stdout, stderr }).toEqual({
      stdout: 'a sound codec passes: every checked MUST holds. 1 holds (seed 1)\n',
      stderr: '',
    });
  });

  test('colours are printed with FORCE_COLOR, but not with --no-color or NO_COLOR', async () => {
    const args = ['codec', 'sound.ts', ...ONE];
    const coloured = await runCli(args, { env: { FORCE_COLOR: '1' } });
    expect(coloured.stdout).toContain('\u001b[32m');
    const refused = await runCli([...args, '--no-color'], { env: { FORCE_COLOR: '1' } });
    expect(refused.stdout).not.toContain('\u001b');
    const both = { NO_COLOR: '1', FORCE_COLOR: '1' };
    for (const env of [{ NO_COLOR: '1' }, both]) {
      expect((await runCli(args, { env })).stdout).not.toContain('\u001b');
    }
  });

  test('--timeout accepts a fraction of a second', async () => {
    const { code, stderr } = await runCli(['codec', 'sound.ts', ...ONE, '--timeout', '2.01']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('timeoutMs') });
  });

  test('two runs with the same seed and ids have the same results', async () => {
    const run = async () => {
      const { stdout } = await runCli([
        'codec',
        'sound.ts',
        '--only',
        'CODEC-GARBAGE',
        '--seed',
        '9',
        '--json',
        '--quiet',
      ]);
      return reportOf(stdout).results.map(({ id, status, detail }) => [id, status, detail]);
    };
    expect(await run()).toEqual(await run());
  });

  test('--only can be repeated and accepts commas, and requirements run in the order of the suite', async () => {
    const only = ['--only', 'CODEC-PEER', '--only', 'CODEC-TOKEN-TEXT, CODEC-SYNCHRONOUS', '--only', 'CODEC-PEER'];
    const { stdout } = await runCli(['codec', 'sound.ts', '--quiet', '--json', ...only]);
    expect(reportOf(stdout).results.map(({ id }) => id)).toEqual([
      'CODEC-SYNCHRONOUS',
      'CODEC-TOKEN-TEXT',
      'CODEC-PEER',
    ]);
  });

  test('list shows every requirement with its level, text and source', async () => {
    const { code, stdout } = await runCli(['list', 'codec']);
    expect(code).toBe(0);
    for (const { id, level, text, source } of CODEC_REQUIREMENTS) {
      expect(stdout).toContain(`${id}  ${level}\n  ${text}\n  Source: ${source}\n`);
    }
    expect((await runCli(['list'])).stdout).toContain(stdout);
  });
});

describe('progress', () => {
  test('progress on a terminal is one line, cut to the width, rewritten in place, and removed at the end', () => {
    const written: string[] = [];
    const progress = new Progress({ isTTY: true, columns: 20, write: (text) => written.push(text) }, 3);
    progress.show(0, 'CODEC-SYNCHRONOUS-AND-LONG');
    progress.show(1, 'CODEC-PEER');
    progress.end();
    expect(written).toEqual(['\r0/3 CODEC-SYNCHRONO\u001b[K', '\r1/3 CODEC-PEER (0 s\u001b[K', '\r\u001b[K']);
  });

  test('progress on a terminal that reports 0 columns is cut to 80', () => {
    const written: string[] = [];
    const progress = new Progress({ isTTY: true, columns: 0, write: (text) => written.push(text) }, 3);
    progress.show(0, 'C'.repeat(100));
    progress.end();
    expect(written[0]).toBe(`\r0/3 ${'C'.repeat(75)}\u001b[K`);
  });

  test('progress without a terminal is printed as occasional lines', () => {
    const written: string[] = [];
    const progress = new Progress({ write: (text) => written.push(text) }, 3);
    for (let done = 0; done < 3; done++) progress.show(done, 'CODEC-PEER');
    progress.end();
    expect(written).toEqual(['0/3 CODEC-PEER (0 s)\n']);
  });
});

describe('help', () => {
  const COMMANDS = ['', 'codec', 'key-wrapper', 'ring-store', 'single-use', 'list'];

  test.each(COMMANDS)('sealring-conformance %s --help has examples that work as typed', async (command) => {
    const { code, stdout } = await runCli([...command.split(' ').filter(Boolean), '--help']);
    expect(code).toBe(0);
    const examples = [...stdout.matchAll(/^ {2}\$ (.+)$/gm)].map(([, line = '']) => line);
    expect(examples.length).toBeGreaterThan(0);

    // A project in the workspace, so that its packages resolve, with the command in node_modules/.bin as from npm.
    const cache = join(root, '.cache');
    mkdirSync(cache, { recursive: true });
    const project = mkdtempSync(join(cache, 'help-'));
    try {
      writeFileSync(join(project, 'package.json'), '{ "private": true }');
      mkdirSync(join(project, 'node_modules', '.bin'), { recursive: true });
      chmodSync(MAIN, 0o755);
      symlinkSync(MAIN, join(project, 'node_modules', '.bin', 'sealring-conformance'));
      const [, target] = /in a file target\.mjs:\n\n((?: {2}.*\n|\n)+?)(?=\n\S)/.exec(stdout) ?? [];
      if (target !== undefined) writeFileSync(join(project, 'target.mjs'), target.replaceAll(/^ {2}/gm, ''));
      for (const example of examples) {
        const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` };
        const printed = await promisify(execFile)('sh', ['-c', example], { cwd: project, env });
        expect(printed.stdout).toMatch(command === '' || command === 'list' ? /CODEC-PEER {2}MUST/ : / passes: /);
      }
      expect(readdirSync(project).includes('report.html')).toBe(target !== undefined);
    } finally {
      rmSync(project, { recursive: true });
    }
  });

  test('the help lists the same options as the README', async () => {
    const readme = readFileSync(join(root, 'packages/conformance/README.md'), 'utf8');
    const section = /^## From the command line\n(.*?)^## /ms.exec(readme)?.[1] ?? '';
    const inReadme = [...section.matchAll(/^\| (`--[^|]+) \|/gm)].flatMap(([, cell = '']) => cell.match(/--[^`]+/g));
    const helps = await Promise.all(['codec', 'ring-store'].map((command) => runCli([command, '--help'])));
    const inHelp = helps.flatMap(({ stdout }) => [...stdout.matchAll(/^ {2}(--\S+(?: [<[]\S+[>\]])?)/gm)]);
    const options = inHelp.map(([, option]) => option).filter((option) => option !== '--help');
    expect(new Set(inReadme)).toEqual(new Set(options));
  });

  test('--version prints the version', async () => {
    const { code, stdout } = await runCli(['--version']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  });
});
