import { randomBytes } from 'node:crypto';
import { createKmsCodec, localKeyWrapper } from '@sealring/core';
import { postgresRing, postgresSingleUse } from '@sealring/postgres';
import { Pool } from 'pg';

const pool = new Pool({ host: 'db.internal', database: 'payments', user: 'payments', ssl: true });
pool.on('error', (error) => console.error('postgres', error));

export const codec = await createKmsCodec({
  keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }), // in production: the key wrapper of your KMS
  ring: postgresRing({ pool, name: 'payments' }),
  ringName: 'payments',
});
export const singleUse = postgresSingleUse({ pool });
