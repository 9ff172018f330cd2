import { createKmsCodec, localKeyWrapper } from '@sealring/core';
import { postgresRing, postgresSingleUse } from '@sealring/postgres';
import { Pool } from 'pg';

const pool = new Pool({ host: 'db.internal', database: 'payments', user: 'payments', ssl: true });
pool.on('error', (error) => console.error('postgres', error));

export const codec = await createKmsCodec({
  keyWrapper: localKeyWrapper({ masterKey: 'in production: a key wrapper on your KMS' }),
  ring: postgresRing({ pool, name: 'payments' }),
  ringName: 'payments',
});
export const singleUse = postgresSingleUse({ pool });
