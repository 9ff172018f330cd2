import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Body, type BodyBlock, parseBody } from './hcl.ts';

/** The files of one folder, which Terraform reads as one. */
export interface Module {
  readonly folder: string;
  readonly blocks: readonly BodyBlock[];
  readonly variables: ReadonlyMap<string, Body>;
  readonly outputs: ReadonlySet<string>;
  readonly locals: ReadonlySet<string>;
  /** Blocks by address: `google_kms_key_ring.this`, `data.google_project.this`, `module.sealring`. */
  readonly addresses: ReadonlyMap<string, BodyBlock>;
}

/** @throws as parseFolder. */
export async function loadModule(folder: string): Promise<Module> {
  const bodies = await parseFolder(folder, '.tf');
  const blocks = bodies.flatMap((body) => body.blocks);
  const ofType = (type: string): BodyBlock[] => blocks.filter((block) => block.type === type);
  const addressed = ['resource', 'data', 'module'].flatMap(ofType);
  return {
    folder,
    blocks,
    variables: new Map(ofType('variable').map(({ labels, body }) => [labels[0] ?? '', body])),
    outputs: new Set(ofType('output').map(({ labels }) => labels[0] ?? '')),
    locals: new Set(ofType('locals').flatMap(({ body }) => [...body.attributes.keys()])),
    addresses: new Map(addressed.map((block) => [addressOf(block), block])),
  };
}

/** The address of a block at the left margin; error messages use it as the block's name. */
export function addressOf({ type, labels }: BodyBlock): string {
  return [...(type === 'resource' ? [] : [type]), ...labels].join('.');
}

/** @throws if a file is not HCL, or has an unknown block at the left margin. */
export function parseFolder(folder: string, end: string): Promise<Body[]> {
  const files = readdirSync(folder).filter((name) => name.endsWith(end));
  return Promise.all(files.toSorted().map((name) => parseFile(folder, name)));
}

async function parseFile(folder: string, name: string): Promise<Body> {
  const body = await parseBody(name, readFileSync(join(folder, name), 'utf8'));
  const [stray] = body.attributes.keys();
  if (stray !== undefined) throw new Error(`${name}: unknown block ${stray}`);
  return body;
}
