/** The target that a module exports: the export named `target` or, if there is none, the default export. */
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

/**
 * The URL of a script for a separate process or thread, in the folder of `from` or below it. In the repository, this is
 * the TypeScript source; in the package, the compiled file.
 */
export function scriptBeside(from: string, name: string): URL {
  return new URL(`./${name}.${from.endsWith('.ts') ? 'ts' : 'js'}`, from);
}
