/** What a module exports as its target: `target`, or else its default export. */
export function exportedTarget(module: object): unknown {
  const { default: standard, target = standard } = module as { default?: unknown; target?: unknown };
  return target;
}

/**
 * The target of a module; a function that makes one is called, a promise of one is waited for.
 *
 * @param url - A file URL. TypeScript needs a Node that strips types: 22.18, 23.6 or newer.
 * @throws {TypeError} for a module without a target; what the module itself throws.
 */
export async function loadTarget(url: string): Promise<object> {
  const exported = exportedTarget(await import(url));
  const made: unknown = await (typeof exported === 'function' ? exported() : exported);
  if (typeof made === 'object' && made !== null) return made;
  throw new TypeError('the module has no default export, and none called target, that is a target or makes one');
}

/** The file beside `from` that runs in a process or thread of its own: compiled, or in the repository its source. */
export function scriptBeside(from: string, name: string): URL {
  return new URL(`./${name}.${from.endsWith('.ts') ? 'ts' : 'js'}`, from);
}
