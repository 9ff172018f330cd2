import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** A TCP proxy on a free loopback port, with the faults of a network. */
export interface TcpProxy {
  readonly host: string;
  readonly port: number;
  /** Connections taken so far. */
  readonly accepted: number;
  /** Delays what passes, each way, in milliseconds. */
  delay(ms: number): void;
  /** Resets every connection, and refuses new ones until {@link mend}. */
  cut(): void;
  /** Resets every connection; new ones are taken. */
  reset(): void;
  /** Keeps every connection open and lets nothing pass, on new ones neither, until {@link mend}. What came is lost. */
  hang(): void;
  mend(): void;
  close(): Promise<void>;
}

type Mode = 'pass' | 'cut' | 'hang';

/** Starts a proxy to a server on this machine. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let mode: Mode = 'pass';
  let delayMs = 0;
  let accepted = 0;

  const server = createServer((near) => {
    accepted++;
    keep(near);
    if (mode === 'cut') {
      near.resetAndDestroy();
      return;
    }
    const far = connect(targetPort, '127.0.0.1');
    keep(far);
    carry(near, far);
    carry(far, near);
  });

  function keep(socket: Socket): void {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  }

  function carry(from: Socket, to: Socket): void {
    // One after the other, so that a delay keeps the order.
    let passed: Promise<void> = Promise.resolve();
    const next = (step: () => void): void => {
      passed = passLater(passed, step);
    };
    from.on('data', (bytes: Buffer) => next(() => void to.write(bytes)));
    from.on('close', () => next(() => void to.destroy()));
  }

  async function passLater(before: Promise<void>, step: () => void): Promise<void> {
    await before;
    if (delayMs > 0) await pause(delayMs);
    if (mode === 'pass') step();
  }

  function resetAll(): void {
    for (const socket of sockets) socket.resetAndDestroy();
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    delay(ms) {
      delayMs = ms;
    },
    cut() {
      mode = 'cut';
      resetAll();
    },
    reset: resetAll,
    hang() {
      mode = 'hang';
    },
    mend() {
      mode = 'pass';
    },
    async close() {
      resetAll();
      server.close();
      await once(server, 'close');
    },
  };
}
