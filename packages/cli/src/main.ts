#!/usr/bin/env node
import { isServer, stopSignal } from './terminal/until-stopped.ts';

// Before the other modules are loaded, which takes most of the start.
if (isServer()) stopSignal();
const { runCommandLine } = await import('./command-line.ts');
await runCommandLine();
