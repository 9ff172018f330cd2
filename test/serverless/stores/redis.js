import { redisRing } from '@sealring/redis';
import { through } from './through.js';

export default through(({ URL }) => redisRing({ url: URL, key: 'workers' }));
