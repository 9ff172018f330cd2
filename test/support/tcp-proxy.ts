import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** A TCP proxy on a free loopback port, with the faults of a network. */
export interface TcpProxy {
  readonly host: string;
  readonly port: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /** Pieces of data that the server has sent so far. */
  readonly answers: number;
  /** Delay of all data, each way, in milliseconds. */
  delay(ms: number): void;
  /** Resets every connection, and refuses new ones until {@link mend}. */
  cut(): void;
  /** Resets every connection; new ones are accepted. */
  reset(): void;
  /** Keeps connections open, also new ones, and drops all data until {@link mend}. */
  hang(): void;
  /**
   * Holds what clients send from the first bytes that contain `text`, on that connection and all others, and delivers
   * it at {@link mend}. Answers pass. Resolves when data is held.
   */
  holdFrom(text: string): Promise<void>;
  mend(): void;
  close(): Promise<void>;
}

type Mode = 'pass' | 'cut' | 'hang';

/** The held data, and the text that starts it. */
interface Hold {
  readonly text: string;
  readonly begun: Signal;
  readonly ended: Signal;
  isOn: boolean;
}

interface Signal {
  readonly given: Promise<void>;
  give(): void;
}

function newSignal(): Signal {
  let give: () => void = () => undefined;
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

/** Starts a proxy to a server on this machine. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let mode: Mode = 'pass';
  let delayMs = 0;
  let accepted = 0;
  let answers = 0;
  let hold: Hold | undefined;

  const server = createServer((near) => {
    accepted++;
    keep(near);
    if (mode === 'cut') {
      near.resetAndDestroy();
      return;
    }
    const far = connect(targetPort, '127.0.0.1');
    keep(far);
    carry(near, far, 'asks');
    carry(far, near, 'answers');
  });

  function keep(socket: Socket): void {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  }

  function carry(from: Socket, to: Socket, what: 'asks' | 'answers'): void {
    // Chunks are sent sequentially, so that a delay keeps the order.
    let passed: Promise<void> = Promise.resolve();
    const next = (step: () => void): void => {
      passed = passLater(passed, step);
    };
    from.on('data', (bytes: Buffer) => {
      if (what === 'asks') {
        if (hold !== undefined && !hold.isOn && bytes.includes(hold.text)) {
          hold.isOn = true;
          hold.begun.give();
        }
        if (hold?.isOn === true) passed = Promise.all([passed, hold.ended.given]).then(() => undefined);
      } else answers++;
      next(() => void to.write(bytes));
    });
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
    get answers() {
      return answers;
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
    holdFrom(text) {
      hold = { text, begun: newSignal(), ended: newSignal(), isOn: false };
      return hold.begun.given;
    },
    mend() {
      mode = 'pass';
      hold?.ended.give();
      hold = undefined;
    },
    async close() {
      resetAll();
      server.close();
      await once(server, 'close');
    },
  };
}
