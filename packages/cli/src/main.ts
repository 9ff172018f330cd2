#!/usr/bin/env node
import { isServer, stopSignal } from './terminal/until-stopped.ts';

// Runs before the other modules are loaded, which takes most of the startup time.
if (isServer()) stopSignal();
const { runCommandLine } = await import('./command-line.ts');
await runCommandLine();
