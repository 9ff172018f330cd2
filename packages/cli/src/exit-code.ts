/** How a command ends. */
export const EXIT_CODE = { done: 0, failed: 1, usage: 2 } as const;
