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
    'The cost of a token compared with alternatives to Sealring and with the cipher alone, and the cost of the keys of a fleet. Values that depend on time are ratios of two measurements that alternate in one run on one machine; calls are counted. This page and its pictures are written by `npm run bench`, from the results that it links to.',
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

const HOW = `- Contenders take turns within one run, and each turn is divided by its neighbour of the same round, because a busy machine affects neighbours alike.
- A number with a range is the median of all rounds with bounds of 95 % confidence, from the order of the values alone.
- A limit is an upper bound, unless the law says "at least" or "more than". The printed number decides; a limit that was measured too rarely is not met.
- The results have the times, so that you can check the ratios. They apply to that machine only.`;

const REPEAT = `\`\`\`sh
npm run bench -- all
\`\`\`

It measures one part after the other and writes the results, this page and its pictures; run nothing else meanwhile. \`npm run bench -- all --only growth\` measures one part again and keeps the others, \`npm run bench -- report\` writes the page from the existing results. Exit code 1: a limit is not met, or a part could not be measured. The part "Instructions" needs valgrind, and is left out without it.`;

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
  const first = failed.length === 0 ? met : `**Not met:**\n\n${table(['part', 'law', 'limit', 'measured'], failed)}`;
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
  return table(['law', 'limit', 'measured', ''], rows);
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
    'Seal and unseal of the same payloads. Each contender has its own process, which works only during its turns; for asynchronous ones, the time until the result counts. The floors: the *bare cipher* is AES-256-GCM of `node:crypto` alone, and the *plain codec*, which is written by hand, adds a random nonce and base64url.',
  boundary:
    'A call of two rounds over a socket, from the official client to a server of the SDK: with the boundary that seals and checks `requestState`, and alternately without it.',
  'fleet-costs':
    'Calls to the KMS and to the store, counted: by tokens, by a member in a day, by a start, and by many starts at once.',
  growth:
    "Rings of more keys, tokens of more processes, and the heap over many tokens. Another process means another salt, so the first token of each makes a key. The heap is measured without V8's optimizing compilers, whose own lists grow with every requested collection.",
  steadiness:
    'A server on an emulated AWS KMS and a local Redis, under a load of a fixed rate: each request is sent when it is due, whatever happened to earlier ones, and its latency counts from then. Each disturbance comes between two quiet phases.',
  instructions:
    'Machine instructions and bytes on the heap of one operation, compared with the committed baseline. Noise does not affect them.',
};

const PICTURES: Readonly<Record<PartName, readonly (readonly [file: string, words: string])[]>> = {
  'token-path': [
    ['benchmark-leads.svg', 'What each contender costs, times Sealring, on a logarithmic scale, seal and unseal'],
    ['benchmark-sizes.svg', 'What each contender costs, times Sealring, over the sizes of the payload'],
  ],
  boundary: [],
  'fleet-costs': [],
  growth: [['benchmark-heap.svg', 'The heap over all tokens, beside its median, with the slope']],
  steadiness: [
    [
      'benchmark-steadiness.svg',
      'The p99.9 of tokens and of requests in each condition, times the quiet one, with the limit',
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
