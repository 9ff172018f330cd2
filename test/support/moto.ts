import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { pythonVenv } from './python-venv.ts';
import { type RunningServer, startOrSkip, startServer } from './servers.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where moto answers for KMS, S3, DynamoDB, IAM and STS: `http://127.0.0.1:PORT`, or empty where it cannot run. */
    moto: string;
  }
}

// The smallest set that serves these five; moto itself declares the two others only with everything else.
const REQUIREMENTS = ['moto==5.2.3', 'flask==3.1.3', 'flask-cors==6.0.5'];

/** Starts moto on a free loopback port. */
export async function startMoto(): Promise<RunningServer> {
  const bin = await pythonVenv('moto', REQUIREMENTS);
  return startServer({
    name: 'moto',
    command: join(bin, 'moto_server'),
    args: ['-H', '127.0.0.1', '-p', '0'],
    // Else Python keeps the line with the port to itself.
    env: { PYTHONUNBUFFERED: '1' },
    readySeconds: 60,
    async ready(printed) {
      const address = /Running on (http:\/\/127\.0\.0\.1:\d+)/.exec(printed)?.[1];
      return address !== undefined && (await answers(`${address}/moto-api/data.json`)) ? address : undefined;
    },
  });
}

/** A vitest `globalSetup`: tests read the address with `inject('moto')`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const moto = await startOrSkip(startMoto);
  project.provide('moto', moto?.address ?? '');
  return async () => moto?.stop();
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}
