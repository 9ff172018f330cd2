import type { Verdict } from '../verdict.ts';
import { detailsOf } from './details.ts';
import { type KeptParts, verdictsOn } from './kept.ts';
import { PART_NAMES, PARTS, type PartName } from './parts.ts';
import { picturesOf } from './pictures.ts';
import { measuredShown, numberShown, safe, table } from './words.ts';

const NOT_MEASURED = '**not measured**';

/** `docs/benchmarks.md`, from the results alone. */
export function pageOf(kept: KeptParts): string {
  return [
    '# Benchmarks',
    'This page compares the cost of a token in Sealring with its cost in alternatives and with the cost of the cipher alone, and shows what the keys of a fleet cost. Values that depend on time are ratios of two measurements that alternate in one run on one machine; numbers of calls are absolute. `npm run bench -- all` writes this page and its pictures from the results to which the page links.',
    '## Limits',
    summary(kept),
    notMet(kept),
    '## How it is measured',
    HOW,
    ...PART_NAMES.map((name) => section(kept, name)),
    '## Machine and versions',
    machines(kept),
    '## Repeat it',
    REPEAT,
  ]
    .join('\n\n')
    .concat('\n');
}

const HOW = `- Contenders take turns within one run, and the result of each turn is divided by that of a neighbouring turn in the same round, because a busy machine affects neighbouring turns alike.
- A number with a range is the median of all rounds, with the bounds of a 95 % confidence interval that is computed from the order of the values alone.
- A limit is an upper bound, unless the criterion says "at least" or "more than". The printed number is the one that is compared with the limit. If a value was measured too few times, its limit counts as not met.
- The results contain the measured times, so that you can check the ratios. All numbers apply only to the machine on which they were measured.`;

const REPEAT = `\`\`\`sh
npm run bench -- all
\`\`\`

The command measures one part after another, and writes the results, this page and its pictures. Run nothing else in the meantime. \`npm run bench -- all --only growth\` measures only that part again, and keeps the results of the others; \`npm run bench -- report\` writes the page from the existing results. Exit code 1 means that a limit is not met, or that a part could not be measured. The part "Instructions" needs valgrind; without valgrind, it is left out.`;

function summary(kept: KeptParts): string {
  const rows = PART_NAMES.map((name) => {
    const verdicts = verdictsOn(kept, name);
    const link = `[${PARTS[name].title}](#${PARTS[name].title.toLowerCase().replaceAll(' ', '-')})`;
    if (verdicts === undefined) return [link, '–', '–', '–', NOT_MEASURED];
    const met = verdicts.filter((verdict) => verdict.met).length;
    const failed = verdicts.length - met;
    return [link, `${verdicts.length}`, `${met}`, failed === 0 ? '0' : `**${failed}**`, kept[name]?.date ?? ''];
  });
  return table(['part', 'limits', 'met', 'not met', 'measured'], rows);
}

/** The text at the top: limits that are not met, and parts that are not measured. */
function notMet(kept: KeptParts): string {
  const failed = PART_NAMES.flatMap((name) =>
    (verdictsOn(kept, name) ?? [])
      .filter(({ met }) => !met)
      .map((verdict) => [PARTS[name].title, lawOf(verdict), numberShown(verdict.limit), measuredShown(verdict)]),
  );
  const missing = PART_NAMES.filter((name) => kept[name] === undefined).map((name) => PARTS[name].title);
  if (missing.length === PART_NAMES.length) return 'Nothing was measured.';
  const met = 'Every limit that was measured is met.';
  const first =
    failed.length === 0 ? met : `**Not met:**\n\n${table(['part', 'criterion', 'limit', 'measured'], failed)}`;
  return missing.length === 0 ? first : `${first}\n\n**Not measured:** ${missing.join(', ')}.`;
}

/** The remedy is for the terminal. */
const lawOf = ({ law }: Verdict): string => safe(law.replace(/; if that is meant, .*$/, ''));

function laws(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map((verdict) => [
    lawOf(verdict),
    numberShown(verdict.limit),
    measuredShown(verdict),
    verdict.met ? 'met' : '**NOT MET**',
  ]);
  return table(['criterion', 'limit', 'measured', ''], rows);
}

function section(kept: KeptParts, name: PartName): string {
  const title = `## ${PARTS[name].title}`;
  const verdicts = verdictsOn(kept, name);
  if (verdicts === undefined) return `${title}\n\n${INTRODUCTIONS[name]}\n\n${NOT_MEASURED}.`;
  const pictures = picturesOf(kept);
  const shown = PICTURES[name]
    .filter(([file]) => pictures.has(file))
    .map(([file, words]) => `![${words}](images/${file})`);
  return [title, INTRODUCTIONS[name], ...shown, laws(verdicts), ...detailsOf(kept, name)].join('\n\n');
}

const INTRODUCTIONS: Readonly<Record<PartName, string>> = {
  'token-path':
    'All contenders seal and unseal the same payloads. Each contender has its own process, which works only during its turns; for asynchronous contenders, the measured time ends when the result is available. Two contenders serve as references: the *bare cipher* is AES-256-GCM of `node:crypto` alone, and the *plain codec*, which is written by hand, adds a random nonce and base64url.',
  boundary:
    'The official client makes a two-round call over a socket to a server built with the SDK, alternately with and without the boundary, which seals and checks `requestState`.',
  'fleet-costs':
    'This part counts the calls to the KMS and to the store that are caused by tokens, by one member in a day, by one start, and by many starts at once.',
  growth:
    "This part measures rings with more keys, tokens from more processes, and the heap over many tokens. Each other process has its own salt, so the *first* token from each process requires the derivation of a key, and the *next* one does not. A *warm unseal* uses a salt that was in use a moment before. For the comparison with the bare cipher, the time of unsealing a next token, as a multiple of a warm unseal, is divided by the time of the bare cipher with as many keys, as a multiple of the time of the cipher with one key. The heap is measured without V8's optimizing compilers, whose own lists grow with every requested garbage collection.",
  steadiness:
    'A server with an emulated AWS KMS and a local Redis receives requests at a fixed rate. Each request is sent when it is due, whatever happened to earlier requests, and its latency is measured from that time. Each disturbance comes between two quiet phases.',
  instructions:
    'This part counts the machine instructions and the bytes on the heap of one operation, and compares them with the committed baseline. Noise does not affect these counts.',
};

const PICTURES: Readonly<Record<PartName, readonly (readonly [file: string, words: string])[]>> = {
  'token-path': [
    [
      'benchmark-leads.svg',
      'The cost of sealing and unsealing with each contender, as a multiple of the cost with Sealring, on a logarithmic scale',
    ],
    ['benchmark-sizes.svg', 'The cost with each contender at each payload size, as a multiple of Sealring'],
  ],
  boundary: [],
  'fleet-costs': [],
  growth: [['benchmark-heap.svg', 'The size of the heap over all tokens, relative to its median, with its slope']],
  steadiness: [
    [
      'benchmark-steadiness.svg',
      'The p99.9 latency of tokens and of requests in each condition, as a multiple of the quiet condition, with the limit',
    ],
  ],
  instructions: [],
};

function machines(kept: KeptParts): string {
  const rows = PART_NAMES.flatMap((name) => {
    const one = kept[name];
    if (one === undefined) return [];
    const options = Object.entries(one.options).map(
      ([option, value]) => `${option} ${String(value).replaceAll(',', ', ')}`,
    );
    return [[`[${PARTS[name].title}](benchmarks/${name}.json)`, one.date, one.machine, one.node, options.join('; ')]];
  });
  const versions = new Map<string, Set<string>>();
  for (const name of PART_NAMES) {
    for (const [of, version] of Object.entries(kept[name]?.versions ?? {})) {
      versions.set(of, (versions.get(of) ?? new Set()).add(version));
    }
  }
  const sorted = [...versions].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [
    table(['results', 'measured', 'machine', 'Node', 'options'], rows),
    table(
      ['', 'version'],
      sorted.map(([of, several]) => [safe(of), [...several].join(', ')]),
    ),
  ].join('\n\n');
}
