// node --test conformance.ts
import { describe, test } from 'node:test';
import { describeKeyWrapper } from '@sealring/conformance';
import target from './target.ts';

describeKeyWrapper(target, { describe, test });
