import { configureGlobal } from 'fast-check';

// One seed makes builds repeatable; another one searches elsewhere.
configureGlobal({ seed: Number(process.env['SEALRING_SEARCH_SEED'] ?? 1) });
