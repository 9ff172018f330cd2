// node --test conformance.ts
import { describe, test } from 'node:test';
import { describeCodec } from '@sealring/conformance';
import target from './target.ts';

describeCodec(target, { describe, test }, { module: new URL('./target.ts', import.meta.url) });
