/** Leaves room for the suffix of an index: PostgreSQL truncates identifiers at 63 bytes. */
const PATTERN = /^(?:([a-z_][a-z0-9_]{0,47})\.)?([a-z_][a-z0-9_]{0,47})$/;

/** A table's name, safe to put into SQL. */
export interface TableName {
  /** Quoted: a name may be a reserved word. */
  readonly sql: string;
  /** Without its schema and unquoted. */
  readonly bare: string;
}

/**
 * Identifiers cannot be parameters of a statement, so only listed characters are allowed: `table` or `schema.table`,
 * each of a to z, 0 to 9 and `_`, up to 48, not beginning with a digit. Undefined for anything else.
 */
export function parseTableName(name: string): TableName | undefined {
  const [, schema, bare] = PATTERN.exec(name) ?? [];
  if (bare === undefined) return undefined;
  return { sql: schema === undefined ? `"${bare}"` : `"${schema}"."${bare}"`, bare };
}
