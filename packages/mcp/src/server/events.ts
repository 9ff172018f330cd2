import { type Channel, channel } from 'node:diagnostics_channel';
import type { RejectEvent } from '../boundary/refusal.ts';
import type { CarrierMethod } from '../boundary/request-identity.ts';

const sealed = channel('sealring:boundary-sealed');
const opened = channel('sealring:boundary-opened');
const refused = channel('sealring:boundary-refused');

/** Tells who listens to `sealring:boundary-sealed` that a state was sealed: `{ method }`. */
export function tellSealed(method: CarrierMethod): void {
  tell(sealed, { method });
}

/** Tells who listens to `sealring:boundary-opened` that a token was accepted: `{ method }`. */
export function tellOpened(method: CarrierMethod): void {
  tell(opened, { method });
}

/** Tells who listens to `sealring:boundary-refused` of a refusal: `{ direction, method, reason }`. */
export function tellRefused({ direction, method, reason }: RejectEvent): void {
  tell(refused, { direction, method, reason });
}

/** Never a part of a token, a state or a principal. */
function tell(to: Channel, event: Readonly<Record<string, string>>): void {
  if (to.hasSubscribers) to.publish(Object.freeze(event));
}
