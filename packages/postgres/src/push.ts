import { createHash } from 'node:crypto';
import type { PushListener } from '@sealring/core/adapter';
import type { PostgresListener } from './client.ts';

/** The channel of one ring: an identifier, which PostgreSQL truncates at 63 bytes. */
export function channelOf(table: string, name: string): string {
  return `sealring_${createHash('sha256').update(`${table}\0${name}`).digest('hex').slice(0, 32)}`;
}

/** Listens to a channel. A connection that ends unexpectedly emits `error`, and stays closed. */
export function pushListener(client: PostgresListener, channel: string): PushListener {
  return {
    async start(changed, lost) {
      client.on('error', lost);
      client.on('notification', changed);
      await client.connect();
      client.unref?.();
      await client.query(`LISTEN "${channel}"`);
    },
    check: () => client.query('SELECT 1'),
    end() {
      client.end().catch(() => undefined);
    },
  };
}
