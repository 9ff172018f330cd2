import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileRing, memoryRing, type RingStore } from '@sealring/core';
import { afterAll } from 'vitest';
import { describeOurRingStore } from './our-ring-store.ts';

const root = mkdtempSync(join(tmpdir(), 'sealring-laws-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const memory = new Map<string, RingStore>();

describeOurRingStore({
  name: 'memory',
  supports: { push: true, serviceDate: false, uniqueRevisions: true },
  async create(name) {
    const store = memory.get(name) ?? memoryRing();
    memory.set(name, store);
    return { store };
  },
});

const fileOf = (name: string): string => join(root, name, 'ring');

// Its revision is the hash of the document, which comes back with it.
describeOurRingStore({
  name: 'file',
  supports: { push: true, serviceDate: false },
  async create(name) {
    mkdirSync(join(root, name), { recursive: true });
    return { store: fileRing(fileOf(name)) };
  },
  remove: (name) => rm(fileOf(name)),
  async plant(name, document) {
    mkdirSync(join(root, name), { recursive: true });
    await writeFile(fileOf(name), document);
  },
  async breakConnection() {
    // An unmounted volume.
    await rename(root, `${root}.away`);
    return () => rename(`${root}.away`, root);
  },
});
