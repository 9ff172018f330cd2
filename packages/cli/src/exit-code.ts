/** The exit codes of the commands. `--help` and the README list them. */
export const EXIT_CODE = {
  done: 0,
  failed: 1,
  usage: 2,
  /** Only `status`: the ring works, but something needs attention. */
  attention: 3,
} as const;
