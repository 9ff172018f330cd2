import { describe } from 'vitest';
import { liveTarget } from '../support/azure-key-vault/live-vault.ts';
import { useVault } from '../support/azure-key-vault/vault-setup.ts';
import { type LawTarget, testWrapperLaws } from '../support/azure-key-vault/wrapper-laws.ts';

const setup = useVault();

const targets: readonly LawTarget[] = [
  { name: 'RSA-OAEP-256, the current version', create: () => setup().signer(), signs: true },
  {
    name: 'RSA-OAEP-256, one version',
    create: () => setup().signer({ keyId: setup().vault.idOf(setup().rsa, setup().rsa.current) }),
    signs: true,
  },
  {
    name: 'A256KW of a Managed HSM',
    create: () => setup().wrapper({ keyId: setup().vault.idOf(setup().hsm), algorithm: 'A256KW' }),
    signs: false,
  },
  // Asked for by SEALRING_LIVE_AZURE_KEY_ID; whoever asks for a vault that cannot be reached sees it fail.
  ...liveTarget(process.env),
];

describe.each(targets)('$name', (target) => {
  testWrapperLaws(target);
});
