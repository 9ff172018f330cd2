/** Times of a ring as Python spells them: `refreshEverySeconds` is `refresh_every_seconds`. */
export function pythonPolicyOf(policy: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(policy).map(([name, value]) => [snakeCase(name), value]));
}
