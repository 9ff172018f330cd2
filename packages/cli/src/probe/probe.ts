import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Failure } from '../failure.ts';
import { answersTo } from './answers.ts';
import { otherParams } from './other-params.ts';
import type { Outcome, ProbedServer, Target } from './server.ts';
import { altered, isReadable } from './state-text.ts';

/** The additional wait after the lifetime of a token, because the clocks of the servers may differ. */
const EXPIRY_MARGIN_MS = 1_000;

/** The checks. */
type CheckId = 'encryption' | 'tampering' | 'arguments' | 'user' | 'expiry';

/** The outcome of one check. */
export interface CheckResult {
  readonly id: CheckId;
  readonly verdict: 'ok' | 'hole' | 'unchecked';
  readonly what: string;
  readonly remedy?: string;
}

/** The options of a probe. */
export interface ProbeInput {
  readonly target: Target;
  /** A target for which the state must be refused; undefined to change each argument of {@link target} instead. */
  readonly otherTarget: Target | undefined;
  /** The input responses of the second round; undefined to agree to every question. */
  readonly answers: Record<string, unknown> | undefined;
  readonly token: string | undefined;
  readonly otherToken: string | undefined;
  /** Lifetime of tokens, in seconds; undefined to leave their expiry unchecked. */
  readonly lifetimeSeconds: number | undefined;
}

type Asked = Outcome & { readonly kind: 'asked' };

/** How many times each attack is tried, because some servers behind the address may be unprotected. */
const TRIES = 2;

/** Attacks a server with its own states. Each attack uses a new state, because a server may accept a state only once. */
export class Probe {
  readonly #server: ProbedServer;
  readonly #input: ProbeInput;
  #first: Asked | undefined;
  /** The states that the server sent in first rounds. */
  readonly #states: string[] = [];
  #readable = 0;

  constructor(server: ProbedServer, input: ProbeInput) {
    this.#server = server;
    this.#input = input;
  }

  /** @throws {Failure} `not-probed` when the server sends no state, or refuses the state of an unchanged call. */
  async run(): Promise<readonly CheckResult[]> {
    const state = await this.#state();
    const accepted = await this.#answer(state, {});
    if (!this.#isAccepted(accepted)) {
      throw new Failure('not-probed', `the server does not accept its own state (${describe(accepted)}): ${ANSWERS}`);
    }
    const attacks = [await this.#tampering(), await this.#arguments(), await this.#user(), await this.#expiry()];
    // Comes last, because it checks every state that the attacks have collected.
    return [this.#encryption(), ...attacks];
  }

  #encryption(): CheckResult {
    // A single state may look like text, compressed or not, by chance.
    const hole =
      this.#readable > 1
        ? 'the client can read the state'
        : new Set(this.#states).size < this.#states.length
          ? 'two calls get the same state'
          : undefined;
    const remedy =
      'Seal the state with protectRequestState, createProtectedMcpServer or protectFetch of @sealring/mcp.';
    return hole === undefined
      ? { id: 'encryption', verdict: 'ok', what: 'the client cannot read the state' }
      : { id: 'encryption', verdict: 'hole', what: hole, remedy };
  }

  async #tampering(): Promise<CheckResult> {
    // The end is left unchanged: the last character of base64 may have bits that are not read.
    for (const share of [0.2, 0.5, 0.8]) {
      const state = altered(await this.#state(), share);
      if (state === undefined || !(await this.#succeeds(state, {}))) continue;
      const remedy = 'Authenticate the state with protectRequestState or protectFetch of @sealring/mcp.';
      return { id: 'tampering', verdict: 'hole', what: 'a state that was changed is accepted', remedy };
    }
    return await this.#refused('tampering', 'a state that was changed is refused', {});
  }

  async #arguments(): Promise<CheckResult> {
    const id = 'arguments';
    const { otherTarget, target, token } = this.#input;
    const others = otherTarget === undefined ? otherParams(target) : [otherTarget];
    let what = 'the call has no arguments to change';
    let checked = 0;
    for (const other of others) {
      if (other === undefined) continue;
      const control = await this.#call(other, token);
      if (control.kind !== 'asked') {
        what = `with other arguments, the server does not ask for input (${describe(control)})`;
        continue;
      }
      if (await this.#succeeds(await this.#state(), { target: other, first: control })) {
        const remedy = 'Bind the state to the request with protectRequestState or protectFetch of @sealring/mcp.';
        return { id, verdict: 'hole', what: 'a state for other arguments is accepted', remedy };
      }
      const result = await this.#refused(id, 'a state for other arguments is refused', { target: other });
      if (result.verdict === 'ok') checked += 1;
      else what = result.what;
    }
    if (checked === others.length && checked > 0) {
      return { id, verdict: 'ok', what: 'a state for other arguments is refused' };
    }
    const some = `${checked} of ${others.length} changes to the arguments are refused; the others could not be tried`;
    return { id, verdict: 'unchecked', what: checked === 0 ? what : some, remedy: OTHER_ARGUMENTS };
  }

  async #user(): Promise<CheckResult> {
    const id = 'user';
    const { token, otherToken, target } = this.#input;
    if (token === undefined || otherToken === undefined) {
      const remedy = 'Set SEALRING_PROBE_TOKEN and SEALRING_PROBE_OTHER_TOKEN to access tokens of two users.';
      return { id, verdict: 'unchecked', what: 'access tokens of two users are required', remedy };
    }
    const control = await this.#call(target, otherToken);
    if (control.kind !== 'asked') {
      const what = `the server does not ask the other user for input (${describe(control)})`;
      return { id, verdict: 'unchecked', what, remedy: 'Use two users who may both make this call.' };
    }
    if (!(await this.#succeeds(await this.#state(), { token: otherToken, first: control }))) {
      return await this.#refused(id, 'the state of another user is refused', { token: otherToken });
    }
    const remedy = 'Bind the state to the user: set requireSubject, and see docs/guides/wire-a-verifier.md.';
    return { id, verdict: 'hole', what: 'the state of another user is accepted', remedy };
  }

  async #expiry(): Promise<CheckResult> {
    const id = 'expiry';
    const { lifetimeSeconds } = this.#input;
    if (lifetimeSeconds === undefined) {
      const remedy =
        'Pass --lifetime with the number of seconds for which a state is accepted; the probe waits that long.';
      return { id, verdict: 'unchecked', what: 'the lifetime of a state is unknown', remedy };
    }
    const state = await this.#state();
    await sleep(lifetimeSeconds * 1_000 + EXPIRY_MARGIN_MS);
    if (!(await this.#succeeds(state, {}))) {
      return await this.#refused(id, `a state is refused after ${lifetimeSeconds} s`, {});
    }
    const remedy = 'Let the state expire: set ttlSeconds of RequestStateSecurity.';
    return { id, verdict: 'hole', what: `a state is accepted after ${lifetimeSeconds} s`, remedy };
  }

  /**
   * The result of attacks that all failed. The refusals show nothing if the server does not accept its own state for
   * the same call either, for example because the call has taken effect or the access token has expired.
   */
  async #refused(
    id: CheckId,
    what: string,
    { target = this.#input.target, token = this.#input.token }: Attack,
  ): Promise<CheckResult> {
    let outcome = await this.#call(target, token);
    if (outcome.kind === 'asked' && typeof outcome.state === 'string') {
      const first = outcome;
      outcome = await this.#answer(String(first.state), { target, token, first });
      if (this.#isAccepted(outcome, first)) return { id, verdict: 'ok', what };
    }
    return {
      id,
      verdict: 'unchecked',
      what: `the server does not accept its own state for the same call either (${describe(outcome)})`,
      remedy: 'Probe a call that can be made repeatedly, with access tokens that stay valid.',
    };
  }

  /** Gets a new state for the target from the server. */
  async #state(): Promise<string> {
    const outcome = await this.#call(this.#input.target, this.#input.token);
    if (outcome.kind !== 'asked') {
      throw new Failure('not-probed', `the server does not ask for input (${describe(outcome)})`);
    }
    this.#first = outcome;
    if (typeof outcome.state !== 'string') {
      throw new Failure('not-probed', 'the server asks for input without a requestState');
    }
    this.#states.push(outcome.state);
    return outcome.state;
  }

  /** Whether the server uses a state that it should refuse. */
  async #succeeds(requestState: string, attack: Attack): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      if (this.#isAccepted(await this.#answer(requestState, attack), attack.first)) return true;
    }
    return false;
  }

  async #answer(
    requestState: string,
    { target = this.#input.target, token = this.#input.token, first = this.#first }: Attack,
  ): Promise<Outcome> {
    const inputResponses = this.#input.answers ?? answersTo(first?.questions);
    return await this.#call(target, token, { requestState, inputResponses });
  }

  async #call(target: Target, token: string | undefined, more?: object): Promise<Outcome> {
    const outcome = await this.#server.call(target, token, more);
    if (outcome.kind === 'asked' && typeof outcome.state === 'string')
      this.#readable += Number(isReadable(outcome.state));
    return outcome;
  }

  /** Whether the server used the state, rather than refusing it or asking again as if it had received none. */
  #isAccepted(outcome: Outcome, first: Asked | undefined = this.#first): boolean {
    if (outcome.kind === 'asked') return !isDeepStrictEqual(outcome.questions, first?.questions);
    return outcome.kind === 'done' && !outcome.isError;
  }
}

interface Attack {
  readonly target?: Target;
  readonly token?: string | undefined;
  readonly first?: Asked | undefined;
}

const ANSWERS =
  'pass --answers with input responses that the server accepts, for a call that can be repeated and asks a different question in each round';
const OTHER_ARGUMENTS =
  'Pass --other-arguments or --other-resource for another call in which the server asks for input.';

function describe(outcome: Outcome): string {
  if (outcome.kind === 'refused') return outcome.why;
  if (outcome.kind === 'asked') return 'it asks the same questions again';
  return outcome.isError ? 'the tool reports an error' : 'it completes the call';
}
