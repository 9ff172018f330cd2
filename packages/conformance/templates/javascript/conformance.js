// node --test conformance.js
import { describe, test } from 'node:test';
import { describeCodec } from '@sealring/conformance';
import target from './target.js';

describeCodec(target, { describe, test }, { module: new URL('./target.js', import.meta.url) });
