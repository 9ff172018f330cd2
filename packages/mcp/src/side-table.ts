/** Something that is known of objects of others, beside what they show. */
export interface SideTable<T> {
  get(object: object): T | undefined;
  set(object: object, value: T): void;
}

/** As a base class: the fields of its subclasses are put on the object given. */
function Given(object: object): object {
  return object;
}
const GivenClass = Given as unknown as new (object: object) => object;

/**
 * A WeakMap of objects that live as long as a request costs more to write, and to collect, than all else that is done
 * to them. So each entry is a private field of its object.
 */
export function sideTable<T>(): SideTable<T> {
  class Entry extends GivenClass {
    #value: T;

    constructor(object: object, value: T) {
      super(object);
      this.#value = value;
    }

    static get(object: object): T | undefined {
      return #value in object ? object.#value : undefined;
    }

    static set(object: object, value: T): void {
      if (#value in object) object.#value = value;
      else void new Entry(object, value);
    }
  }
  return Entry;
}
