import type { PushListener } from '@sealring/core/adapter';
import type { RedisSubscriber } from './client.ts';

/** Listens to a channel. The client reconnects and subscribes again by itself after most failures. */
export function pushListener(subscriber: RedisSubscriber, channel: string): PushListener {
  // Without a listener, an error would end the process.
  subscriber.on('error', () => undefined);
  return {
    async start(changed) {
      subscriber.unref?.();
      await subscriber.connect();
      await subscriber.subscribe(channel, changed);
      subscriber.on('ready', changed);
    },
    check: () => subscriber.sendCommand(['PING']),
    end() {
      if (subscriber.isOpen) subscriber.destroy();
    },
  };
}
