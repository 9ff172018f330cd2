import { channel } from 'node:diagnostics_channel';
import type { RejectEvent } from '../boundary/refusal.ts';
import type { CarrierMethod } from '../boundary/request-identity.ts';

/**
 * The events of this package, by the name of their `node:diagnostics_channel` channel. They contain no part of a token,
 * a state or a principal.
 */
export interface BoundaryEvents {
  /** A state was sealed. */
  'sealring:boundary-sealed': { readonly method: CarrierMethod };
  /** A token was accepted. */
  'sealring:boundary-unsealed': { readonly method: CarrierMethod };
  /** A token or a state was refused. */
  'sealring:boundary-refused': Pick<RejectEvent, 'direction' | 'method' | 'reason'>;
  /** An access token names no subject: emitted once for each client, with a hash of the client id. */
  'sealring:principal-without-subject': { readonly client: string };
}

/** The names of {@link BoundaryEvents}. */
export const BOUNDARY_EVENTS: readonly (keyof BoundaryEvents)[] = Object.freeze([
  'sealring:boundary-sealed',
  'sealring:boundary-unsealed',
  'sealring:boundary-refused',
  'sealring:principal-without-subject',
]);

/** One channel. Check {@link isHeard} before you do work that only an event needs. */
class EventChannel<Name extends keyof BoundaryEvents> {
  readonly #channel;

  constructor(name: Name) {
    this.#channel = channel(name);
  }

  get isHeard(): boolean {
    return this.#channel.hasSubscribers;
  }

  emit(event: BoundaryEvents[Name]): void {
    this.#channel.publish(Object.freeze(event));
  }
}

export const boundarySealed: EventChannel<'sealring:boundary-sealed'> = new EventChannel('sealring:boundary-sealed');
export const boundaryUnsealed: EventChannel<'sealring:boundary-unsealed'> = new EventChannel(
  'sealring:boundary-unsealed',
);
export const boundaryRefused: EventChannel<'sealring:boundary-refused'> = new EventChannel('sealring:boundary-refused');
export const principalWithoutSubject: EventChannel<'sealring:principal-without-subject'> = new EventChannel(
  'sealring:principal-without-subject',
);
