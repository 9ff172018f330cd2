import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Tarball } from './tarballs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A registry with only the packages of this repository, for the scope `@sealring` in a project's `.npmrc`. */
export interface PackageRegistry extends AsyncDisposable {
  /** The line of an `.npmrc`. */
  readonly npmrc: string;
}

/** Serves packed tarballs as the npm registry would: a document for each package, and its tarballs. */
export async function servePackages(tarballs: readonly Tarball[]): Promise<PackageRegistry> {
  const http = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname).slice(1);
    const tarball = tarballs.find(({ name }) => path === name || path === `${name}.tgz`);
    if (tarball === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
      return;
    }
    const bytes = readFileSync(tarball.path);
    if (path.endsWith('.tgz')) response.end(bytes);
    else
      response.setHeader('content-type', 'application/json').end(JSON.stringify(documentOf(tarball, bytes, origin())));
  });
  await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
  const origin = (): string => `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  return {
    npmrc: `@sealring:registry=${origin()}\n`,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      await new Promise((closed) => http.close(closed));
    },
  };
}

function documentOf({ name }: Tarball, bytes: Buffer, origin: string): object {
  const folder = join(root, 'packages', name.replace('@sealring/', ''));
  const manifest: { readonly version: string } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
  const version = { ...manifest, dist: { tarball: `${origin}/${name}.tgz`, integrity } };
  return { name, 'dist-tags': { latest: manifest.version }, versions: { [manifest.version]: version } };
}
