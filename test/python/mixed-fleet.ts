import { setTimeout as pause } from 'node:timers/promises';
import { Member } from '../fleet/fleet.ts';
import { fleetPolicy } from '../fleet/fleet-policy.ts';
import type { KmsPlace } from '../fleet/member-kms.ts';
import type { RingPlace } from '../fleet/member-ring.ts';
import { pythonPolicyOf } from './python-policy.ts';
import { PythonProcess } from './python-process.ts';

/** How long a member may take to read a key that is active at once: a request waits for `prepare` meanwhile. */
const LEARNS_WITHIN_MS = 5_000;
/** Approximate number of earlier tokens that every member unseals in a round. */
const MOST_EARLIER = 10;

/** A member in its own process, in either language. */
export interface MixedMember {
  readonly name: string;
  start(): Promise<void>;
  seal(payload: string): Promise<string>;
  /** The failure; undefined if the token was unsealed to the payload. */
  open(token: string, payload: string): Promise<string | undefined>;
  rotate(emergency: boolean): Promise<void>;
  revoke(keyId: string): Promise<void>;
  health(): Promise<{ readonly status: string; readonly keys: Readonly<Record<string, string>> }>;
  kill(): Promise<void>;
}

/** The address of the ring, for both languages. */
export interface MixedPlace {
  readonly typescript: RingPlace;
  readonly python: object;
  readonly kms: KmsPlace;
  /** Default: {@link fleetPolicy}. */
  readonly policy?: Readonly<Record<string, number>>;
}

export async function typescriptMember(name: string, place: MixedPlace): Promise<MixedMember> {
  const member = await Member.fork(name);
  const { typescript: ring, kms, policy = fleetPolicy } = place;
  return {
    name,
    start: async () => void (await member.tell('start', { ring, kms, policy })),
    seal: async (payload) => {
      const { sealed, failures } = await member.tell('seal', [payload]);
      if (sealed[0] === undefined) throw new Error(failures.join());
      return sealed[0].token;
    },
    open: async (token, payload) => (await member.tell('open', [{ token, payload }]))[0],
    rotate: (emergency) => member.tell('rotate', { emergency }),
    revoke: (keyId) => member.tell('revoke', { keyId }),
    health: async () => {
      const { status, keys } = await member.tell('health', undefined);
      return { status, keys: Object.fromEntries(keys.map(({ id, state }) => [id, state])) };
    },
    kill: async () => member.kill(),
  };
}

export function pythonMember(name: string, place: MixedPlace, python: string): MixedMember {
  const { kms, policy = fleetPolicy } = place;
  const member = new PythonProcess(python, {
    role: 'member',
    keyWrapper: 'masterKey' in kms ? { masterKey: Buffer.from(kms.masterKey, 'hex').toString('base64') } : kms,
    ring: place.python,
    ringName: 'default',
    policy: pythonPolicyOf(policy),
  });
  return {
    name,
    start: () => member.start(),
    seal: (payload) => member.seal(payload),
    open: async (token, payload) => {
      try {
        const opened = await member.unseal(token);
        return opened === payload ? undefined : `got ${opened}`;
      } catch (error) {
        return String(error);
      }
    },
    rotate: (emergency) => member.rotate({ emergency }),
    revoke: (keyId) => member.revoke(keyId),
    health: () => member.health(),
    kill: () => member.kill(),
  };
}

/** Members that all get requests, and the results for their tokens. */
export class MixedFleet {
  readonly members: MixedMember[] = [];
  readonly failures: string[] = [];
  readonly revoked = new Set<string>();
  readonly #kept: { readonly token: string; readonly payload: string }[] = [];
  opened = 0;

  async start(members: readonly MixedMember[]): Promise<void> {
    await Promise.all(members.map((member) => member.start()));
    this.members.push(...members);
  }

  /** kill -9 of a member that has no request in progress. */
  async kill(member: MixedMember): Promise<void> {
    this.members.splice(this.members.indexOf(member), 1);
    await member.kill();
  }

  get sealingKeys(): ReadonlySet<string> {
    return new Set(this.#kept.map(({ token }) => keyIdOf(token)));
  }

  /** Every member seals, and every member unseals all these tokens and some earlier ones. */
  async round(): Promise<void> {
    const members = [...this.members];
    const sealed = await Promise.all(members.map((member) => this.#seal(member)));
    const fresh = sealed.filter((each) => each !== undefined);
    const chance = MOST_EARLIER / (this.#kept.length + 1);
    const earlier = this.#kept.filter(() => Math.random() < chance);
    this.#kept.push(...fresh);
    await Promise.all(members.flatMap((member) => [...fresh, ...earlier].map((each) => this.#open(member, each))));
  }

  /** Repeats rounds while `run` takes; it gets the fleet between two rounds. */
  async underLoad(
    run: (betweenRounds: (change: () => Promise<void>) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const changes: (() => Promise<void>)[] = [];
    const done = new AbortController();
    const load = (async (): Promise<void> => {
      while (!done.signal.aborted) {
        await this.round();
        for (const change of changes.splice(0)) await change();
        await pause(20);
      }
    })();
    const betweenRounds = (change: () => Promise<void>): Promise<void> =>
      new Promise((resolve, reject) => {
        changes.push(() => change().then(resolve, reject));
      });
    try {
      await run(betweenRounds);
    } finally {
      done.abort();
      await load;
    }
  }

  /** Every member unseals every valid token. */
  async openAllKept(): Promise<void> {
    await Promise.all(this.members.flatMap((member) => this.#kept.map((each) => this.#open(member, each))));
  }

  /** Tokens of revoked keys that a member still unseals. */
  async openedThoughRevoked(): Promise<string[]> {
    const dead = this.#kept.filter(({ token }) => this.revoked.has(keyIdOf(token)));
    const found: string[] = [];
    for (const member of this.members) {
      for (const { token, payload } of dead.slice(0, 50)) {
        if ((await member.open(token, payload)) === undefined) found.push(`${member.name}: ${payload}`);
      }
    }
    return found;
  }

  async #seal(member: MixedMember): Promise<{ readonly token: string; readonly payload: string } | undefined> {
    const payload = `${member.name}, token ${this.#kept.length}`;
    try {
      return { token: await member.seal(payload), payload };
    } catch (error) {
      this.failures.push(`${payload}: ${String(error)}`);
      return undefined;
    }
  }

  async #open(member: MixedMember, { token, payload }: { token: string; payload: string }): Promise<void> {
    const until = performance.now() + LEARNS_WITHIN_MS;
    let failure = await member.open(token, payload);
    while (failure?.includes('unknown key') === true && !this.#isRevoked(token) && performance.now() < until) {
      await pause(50);
      failure = await member.open(token, payload);
    }
    if (failure === undefined) this.opened += 1;
    else if (!this.#isRevoked(token)) this.failures.push(`${member.name}: ${payload}: ${failure}`);
  }

  #isRevoked(token: string): boolean {
    return this.revoked.has(keyIdOf(token));
  }
}

/** The key id is the first 12 characters after `sr1.`. */
export function keyIdOf(token: string): string {
  return token.slice(4, 16);
}
