import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileRing, memoryRing, type RingStore } from '@sealring/core';
import { afterAll } from 'vitest';
import { describeRingStore } from './ring-store-laws.ts';

const root = mkdtempSync(join(tmpdir(), 'sealring-laws-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const memory = new Map<string, RingStore>();

describeRingStore('memory', {
  hasPush: true,
  isDated: false,
  uniqueRevisions: true,
  async create(name) {
    const store = memory.get(name) ?? memoryRing();
    memory.set(name, store);
    return { store };
  },
});

const fileOf = (name: string): string => join(root, name, 'ring');

// Its revision is the hash of the document, so that a deletion and the same document again are no change to it.
describeRingStore('file', {
  hasPush: true,
  isDated: false,
  async create(name) {
    mkdirSync(join(root, name), { recursive: true });
    return { store: fileRing(fileOf(name)) };
  },
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
