import { soundCodec, zooTarget } from '../zoo/broken-codecs.ts';

// What is printed before a codec is used is not the codec's.
process.stdout.write('starting\n');

export default () => zooTarget('a module', soundCodec());
