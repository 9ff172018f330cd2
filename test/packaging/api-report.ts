/** The names of a report of api-extractor that exist at run time, sorted: types leave nothing to import. */
export function exportedValues(report: string): string[] {
  const declared = /^export (?:declare )?(?:abstract )?(?:async )?(?:class|function\*?|const|let|var|enum) ([\w$]+)/gm;
  return [...new Set(Array.from(report.matchAll(declared), ([, name]) => name ?? ''))].toSorted();
}

/** Where the report of an entry point lies in its package: `.` is api.md, `./name` is api.name.md. */
export function reportNameOf(entry: string): string {
  return ['api', ...entry.split('/').slice(1), 'md'].join('.');
}
