import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { channels } from '../../src/contracts/events.ts';

type Event = Readonly<Record<string, unknown>>;

/** Every event that codecs emit, from `listen` to `end`. */
export class EventLog {
  readonly #names = Object.keys(channels).map((name) => `sealring:${name}`);
  #heard: { readonly channel: string; readonly event: Event }[] = [];

  listen(): void {
    for (const name of this.#names) subscribe(name, this.#note);
  }

  end(): void {
    for (const name of this.#names) unsubscribe(name, this.#note);
  }

  clear(): void {
    this.#heard = [];
  }

  /** The events of a channel, without the `ringName` that each of them has: events.test.ts checks it. */
  of(channel: string): readonly Event[] {
    const events = this.#heard.filter((one) => one.channel === channel).map(({ event }) => event);
    return events.map((event) => Object.fromEntries(Object.entries(event).filter(([name]) => name !== 'ringName')));
  }

  readonly #note = (event: unknown, channel: string | symbol): void => {
    this.#heard.push({ channel: String(channel).replace('sealring:', ''), event: Object(event) });
  };
}
