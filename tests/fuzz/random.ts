/** Seeded random values, the same on all machines. */

/** A source of pseudorandom values: sfc32, seeded by a hash of its name. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** @param name The seed. */
  constructor(name: string) {
    [this.#a, this.#b, this.#c] = [hash(name, 1), hash(name, 2), hash(name, 3)];
    for (let n = 0; n < 12; n++) this.next();
  }

  /** Returns a number from 0 up to 1. */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  }

  /** Returns an integer from 0 up to a bound, without the bound. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  /** Returns a size up to a maximum. Each order of magnitude is as likely as any other. */
  size(max: number): number {
    return Math.floor(Math.exp(this.next() * Math.log(max + 1)));
  }

  /** Returns a list of values. */
  list<T>(count: number, make: (index: number) => T): T[] {
    return Array.from({ length: count }, (_, index) => make(index));
  }
}

/** FNV-1a. */
function hash(text: string, salt: number): number {
  let value = 0x811c9dc5 ^ salt;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value;
}
