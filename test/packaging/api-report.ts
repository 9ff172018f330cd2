/** How a report shows `export * as name`: without the word `export`. */
const NAMESPACE = /^declare namespace ([\w$]+) \{/gm;

/** The names of a report of api-extractor that exist at run time, sorted: types cannot be imported. */
export function exportedValues(report: string): string[] {
  const declared = /^export (?:declare )?(?:abstract )?(?:async )?(?:class|function\*?|const|let|var|enum) ([\w$]+)/gm;
  const names = [report.matchAll(declared), report.matchAll(NAMESPACE)].flatMap((found) => [...found]);
  return [...new Set(names.map(([, name = '']) => name))].toSorted();
}

/** Path of an entry point's report in its package: `.` is api.md, `./name` is api.name.md. */
export function reportNameOf(entry: string): string {
  return ['api', ...entry.split('/').slice(1), 'md'].join('.');
}
