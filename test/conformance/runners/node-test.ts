import { describe, test } from 'node:test';
import { describeCodec } from '@sealring/conformance';
import { target } from './target.ts';

describeCodec(target, { describe, test });
