import { soundCodec, zooTarget } from '../zoo/broken-codecs.ts';

// Output on load does not count as output of the codec.
process.stdout.write('starting\n');

export default () => zooTarget('a module', soundCodec());
