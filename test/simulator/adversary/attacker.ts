import type { Dice } from '../dice.ts';
import type { Oracle } from '../oracle.ts';
import { MINUTE, SECOND, type World, type WorldEvent } from '../world.ts';
import { Composer } from './composer.ts';
import { forge, junkToken } from './forge.ts';
import { steal } from './loot.ts';
import type { Powers } from './powers.ts';

/** The time between deliveries, in milliseconds: the attacker writes rapidly, waits, or only reacts to events. */
const TEMPI: readonly (readonly [number, number])[] = [
  [SECOND, 15 * SECOND],
  [5 * SECOND, MINUTE],
  [MINUTE, 20 * MINUTE],
];
const THEFTS = 3;
const PRESENTED_EVERY_MS = 400;
/** Honest writers do not build on a document of the attacker if another follows at once. */
const AIM_CHANCE = 0.4;
const AIMED_AT: readonly WorldEvent['kind'][] = [
  'starting',
  'cut off',
  'KMS away',
  'clock wrong',
  'generating',
  'revocation',
  'activation',
];

/** Uses the attacker's powers for a while, at random moments and at suitable ones. */
export class Attacker {
  readonly #world: World;
  readonly #oracle: Oracle;
  readonly #powers: Powers;
  readonly #dice: Dice;
  readonly #composer: Composer;
  #untilMs = 0;
  #genuine: string | undefined;
  deliveries = 0;

  constructor(world: World, oracle: Oracle, powers: Powers, dice: Dice) {
    this.#world = world;
    this.#oracle = oracle;
    this.#powers = powers;
    this.#dice = dice;
    this.#composer = new Composer(world, dice, oracle.thefts, powers);
  }

  /** Continues until `untilMs` of the world, and then stops permanently. */
  begin(untilMs: number): void {
    const { timeline, hostility } = this.#world;
    this.#untilMs = untilMs;
    this.#world.mayWrap = this.#powers.wraps;
    const lastsMs = untilMs - timeline.nowMs;
    steal(this.#world, this.#oracle.thefts, this.#powers.steals);
    for (let i = 0; i < THEFTS; i++) {
      timeline.after(this.#dice.between(0, lastsMs), () =>
        steal(this.#world, this.#oracle.thefts, this.#powers.steals),
      );
    }
    if (this.#powers.writes) {
      hostility.begin(timeline.nowMs);
      timeline.after(lastsMs, () => hostility.end(timeline.nowMs));
      const [from, to] = this.#dice.pick(TEMPI);
      this.#again(
        () => this.#dice.between(from, to),
        () => this.#deliver(),
      );
      this.#world.listen(({ kind }) => {
        if (this.#isOver || !AIMED_AT.includes(kind) || !this.#dice.chance(AIM_CHANCE)) return;
        timeline.after(this.#dice.between(0, 10 * SECOND), () => this.#deliver());
      });
    }
    if (this.#powers.notifies)
      this.#again(
        () => this.#dice.between(SECOND, 2 * MINUTE),
        () => this.#notify(),
      );
    if (this.#powers.presents) {
      timeline.every(10 * SECOND, () => this.#takeGenuine());
      this.#again(
        () => this.#dice.latencyMs(PRESENTED_EVERY_MS),
        () => this.#present(),
      );
    }
    this.#again(
      () => 2 * MINUTE,
      () => this.#presentForged(),
    );
  }

  get #isOver(): boolean {
    return this.#world.timeline.nowMs >= this.#untilMs;
  }

  #again(waitMs: () => number, act: () => void): void {
    this.#world.timeline.after(waitMs(), () => {
      if (this.#isOver) return;
      act();
      this.#again(waitMs, act);
    });
  }

  #deliver(): void {
    if (this.#isOver) return;
    this.deliveries += 1;
    this.#world.trace('the attacker writes');
    this.#world.store.replace(this.#composer.compose());
  }

  #notify(): void {
    const times = this.#dice.pick([1, 10, 300]);
    for (let i = 0; i < times; i++) this.#world.store.notify();
    this.deliveries += times;
  }

  #takeGenuine(): void {
    try {
      this.#genuine = this.#world.anyMember(this.#dice)?.codec?.seal(new Uint8Array(3)) ?? this.#genuine;
    } catch {
      // A member that does not seal has no token to steal.
    }
  }

  #present(): void {
    const member = this.#world.anyMember(this.#dice);
    const { codec } = member ?? {};
    if (member === undefined || codec === undefined) return;
    const token = junkToken(this.#dice, this.#genuine);
    if (token === this.#genuine) return;
    this.deliveries += 1;
    const open = (): void => {
      try {
        codec.unseal(token);
        this.#oracle.report('no forged token unseals', `${member.name} opened ${token}`);
      } catch (error) {
        this.#oracle.caught(error, `${member.name} opens`);
      }
    };
    if (this.#dice.chance(0.5)) {
      open();
      return;
    }
    Promise.resolve(codec.prepare(token)).then(open, (error: unknown) =>
      this.#oracle.caught(error, `${member.name} prepares`),
    );
  }

  /** A token under the attacker's own key never unseals; one under a stolen key, no longer than the fleet allows. */
  #presentForged(): void {
    for (const key of this.#oracle.thefts.all) {
      const member = this.#world.anyMember(this.#dice);
      if (member?.codec === undefined) continue;
      this.#oracle.presented(member, key.id, forge(key.held, this.#dice));
    }
  }
}
