/**
 * Preloaded into an emulator with `--import`: its server keeps idle connections for ten minutes, whatever the emulator
 * sets, as the real service does for minutes. Otherwise a request of a test that is late meets a connection that the
 * server is closing, and fails.
 */
import http from 'node:http';

const IDLE_MS = 600_000;
const { createServer } = http;

http.createServer = (...parameters) => {
  const server = createServer(...parameters);
  Object.defineProperty(server, 'keepAliveTimeout', { get: () => IDLE_MS, set() {} });
  return server;
};
