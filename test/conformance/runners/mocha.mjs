import { describeCodec } from '@sealring/conformance';
import { describe, it } from 'mocha';
import { target } from './target.ts';

describeCodec(target, { describe, test: it });
