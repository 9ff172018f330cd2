import { readFileSync } from 'node:fs';

/** A key of a vector file. */
interface VectorKey {
  readonly name: string;
  readonly hex: string;
}

/** The source of the bound text; `principalText` holds it in any case. */
export type VectorPrincipal =
  | null
  | { readonly clientId: string; readonly iss?: unknown; readonly sub?: string }
  | { readonly text: string }
  | { readonly unbound: true }
  | { readonly error: string };

interface VectorRequest {
  readonly name: string;
  readonly ring: readonly string[];
  readonly audience: string | null;
  readonly principal: VectorPrincipal;
  readonly principalText: string | null;
  readonly method: string;
  readonly params: string;
  readonly now: number;
  readonly claims: string;
  readonly jsRepresentable: boolean;
  readonly jsLoss?: string;
  readonly lenient?: boolean;
}

interface Mint extends VectorRequest {
  readonly ttl: number;
  readonly state: string;
  readonly target: string;
  readonly canonicalArguments: string;
  readonly a: string;
  readonly p: string | null;
  readonly pSalt: string | null;
  readonly token: string;
}

export interface Echo extends VectorRequest {
  readonly class: string;
  readonly requestState: unknown;
  readonly nowMs: number;
  readonly expect: 'accept' | 'reject' | 'untouched';
  readonly state?: string;
  readonly reason?: string;
  readonly reasonMayDiffer?: boolean;
}

export interface BoundaryVectors {
  readonly wireError: { readonly code: number; readonly message: string; readonly data: unknown };
  readonly keys: readonly VectorKey[];
  readonly policyConstruction: readonly { readonly name: string }[];
  readonly audienceResolution: readonly {
    readonly policyAudience: string | null;
    readonly defaultAudience: string | null;
    readonly effective: string | null;
  }[];
  readonly sealRefusals: readonly {
    readonly name: string;
    readonly principal: VectorPrincipal;
    readonly wireError: { readonly code: number; readonly message: string };
    readonly reason: string;
  }[];
  readonly mints: readonly Mint[];
  readonly vectors: readonly Echo[];
}

export interface CompactJsonVectors {
  readonly vectors: readonly {
    readonly name: string;
    readonly wire: string;
    readonly canonical: string;
    readonly digest: string;
    readonly jsRepresentable: boolean;
    readonly jsLoss?: string;
    readonly jsGuessMatches?: boolean;
  }[];
  readonly rejected: readonly { readonly name: string; readonly wire: string; readonly jsonParseAccepts: boolean }[];
}

interface TypescriptClock {
  readonly name: string;
  readonly key: string;
  /** The result of the bind callback; null if there is no callback. */
  readonly bind: string | null;
  readonly nowMs: number;
  readonly payload?: unknown;
  readonly payloadAbsent?: boolean;
}

export interface TypescriptVectors {
  readonly keys: readonly (VectorKey & { readonly text?: string })[];
  readonly mints: readonly (TypescriptClock & { readonly ttlSeconds: number; readonly token: string })[];
  readonly vectors: readonly (TypescriptClock & {
    readonly class: string;
    readonly token?: string;
    readonly tokenPieces?: readonly (readonly [string, number])[];
    readonly expect: 'accept' | 'reject';
    readonly reason?: string | null;
    readonly lenient?: boolean;
    readonly reasonMayDiffer?: boolean;
  })[];
  readonly construction: readonly {
    readonly name: string;
    readonly options: {
      readonly key: string | number | { readonly bytes: number } | { readonly text: string };
      readonly ttlSeconds?: string;
      readonly bind?: string;
      readonly mint?: string;
    };
    readonly error: string;
    readonly message: string;
  }[];
}

export type McpdVectors = readonly {
  readonly mode: 'signed' | 'encrypted';
  readonly bindTo: 'none' | 'authSubject' | 'authSubjectAndTool';
  readonly keyHex: string;
  readonly subject: string;
  readonly tool: string;
  readonly state: string;
  readonly wire: string;
  readonly expired: boolean;
  readonly echoedBy: readonly { readonly subject: string; readonly tool: string; readonly accepted: boolean }[];
}[];

export const typescriptVectors: TypescriptVectors = read('typescript-codec.json');
export const mcpdVectors: McpdVectors = read('mcp.d.json');
export const boundaryVectors: BoundaryVectors = read('python-boundary.json');
export const compactJsonVectors: CompactJsonVectors = read('python-compact-json.json');

export function ringOf(names: readonly string[]): Uint8Array[] {
  return names.map((name) => {
    const key = boundaryVectors.keys.find((candidate) => candidate.name === name);
    if (key === undefined) throw new Error(`no key ${name} in the vectors`);
    return Buffer.from(key.hex, 'hex');
  });
}

function read(file: string): ReturnType<typeof JSON.parse> {
  return JSON.parse(readFileSync(new URL(`../../../../vectors/${file}`, import.meta.url), 'utf8'));
}
