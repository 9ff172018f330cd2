import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { type DeskSettings, deskFactory } from './desk.ts';

// A separate program: its standard output is the connection, so reports go to standard error, line by line.
const settings: DeskSettings = JSON.parse(process.env['DESK'] ?? '');
serveStdio(deskFactory(settings, (told) => process.stderr.write(`${JSON.stringify(told)}\n`)));
