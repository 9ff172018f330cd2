// node --test conformance.ts
import { describe, test } from 'node:test';
import { describeRingStore } from '@sealring/conformance';
import target from './target.ts';

describeRingStore(target, { describe, test });
