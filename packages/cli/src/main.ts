#!/usr/bin/env node
import { stopSignal } from './terminal/until-stopped.ts';

// Before the other modules are loaded, which takes most of the start.
if (['keeper', 'proxy'].includes(process.argv[2] ?? '')) stopSignal();
const { runCommandLine } = await import('./command-line.ts');
await runCommandLine();
