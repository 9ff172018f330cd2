import { postgresRing } from '@sealring/postgres';
import { Pool } from 'pg';
import { through } from './through.js';

export default through(({ URL }) => {
  const pool = new Pool({ connectionString: URL, max: 1 });
  return postgresRing({ pool, name: 'workers' });
});
