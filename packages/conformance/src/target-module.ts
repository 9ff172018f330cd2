/** The export of a module that is the target: the export named `target` or, without one, the default export. */
export function exportedTarget(module: object): unknown {
  const { default: standard, target = standard } = module as { default?: unknown; target?: unknown };
  return target;
}

/**
 * Returns the target of a module. The export may also be a promise of the target, or a function that
 * creates the target.
 *
 * @param url - A file URL. A TypeScript file requires a version of Node.js that strips types: 22.18, 23.6 or newer.
 * @throws {TypeError} for a module without a target; any error that the module throws.
 */
export async function loadTarget(url: string): Promise<object> {
  const exported = exportedTarget(await import(url));
  const made: unknown = await (typeof exported === 'function' ? exported() : exported);
  if (typeof made === 'object' && made !== null) return made;
  throw new TypeError('the module must export a target, or a function that creates one, as default or as target');
}

/** A script in the folder of `from`, or below it, for a separate process or thread: compiled, or its source in the repository. */
export function scriptBeside(from: string, name: string): URL {
  return new URL(`./${name}.${from.endsWith('.ts') ? 'ts' : 'js'}`, from);
}
