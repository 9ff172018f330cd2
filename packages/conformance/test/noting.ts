/** The object, with each call of these methods passed to `note` first. A method that the object lacks stays absent. */
export function noting<T extends object>(
  made: T,
  methods: readonly (keyof T & string)[],
  note: (name: string, given: readonly unknown[]) => void,
): T {
  const noted = methods.flatMap((name) => {
    const own: unknown = made[name];
    const call = (...given: unknown[]): unknown => {
      note(name, given);
      return Reflect.apply(own as () => unknown, made, given);
    };
    return typeof own === 'function' ? [[name, call] as const] : [];
  });
  return Object.assign(Object.create(made), Object.fromEntries(noted));
}
