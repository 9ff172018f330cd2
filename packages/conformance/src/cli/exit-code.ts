/** How a run ends. One that a signal ended has 128 and the signal's number, as shells have it. */
export const EXIT_CODE = { passed: 0, failed: 1, usage: 2, SIGINT: 130, SIGTERM: 143 } as const;

export type ExitCode = (typeof EXIT_CODE)[keyof typeof EXIT_CODE];
