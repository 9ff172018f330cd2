import { startGcpKms } from './server.ts';

// A fake Cloud KMS for other processes: `node test/support/gcp-kms/serve.ts [port]`. Prints its address and the name of
// its key, one per line; SIGINT and SIGTERM end it.

const server = await startGcpKms({ port: Number(process.argv[2] ?? 0) });
process.stdout.write(`Running on http://${server.host}:${server.port}\nKey ${server.kms.createKey()}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void server.stop());
