import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeKeyVault } from './fake-key-vault.ts';

// A fake Key Vault for other processes: `node test/support/azure-key-vault/serve.ts [port]`. Prints, one per line, its
// address, the file of the certificate to trust (for NODE_EXTRA_CA_CERTS), a bearer token with every permission, a key
// that wraps, and the version of a key that signs. SIGINT and SIGTERM end it.

const vault = await FakeKeyVault.start(Number(process.argv[2] ?? 0));
const folder = mkdtempSync(join(tmpdir(), 'fake-key-vault-'));
const certificate = join(folder, 'certificate.pem');
writeFileSync(certificate, vault.certificate);
const wrapping = vault.createKey('wrapping');
const signing = vault.createKey('signing', 'EC');
const lines = [
  `Running on ${vault.url}`,
  `Certificate ${certificate}`,
  `Token ${vault.issueToken()}`,
  `Key ${vault.idOf(wrapping)}`,
  `Signing key ${vault.idOf(signing, signing.current)}`,
];
process.stdout.write(`${lines.join('\n')}\n`);

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    rmSync(folder, { recursive: true, force: true });
    void vault.stop();
  });
}
