/** Reads that may overlap, for example after events in quick succession. Responses can arrive in any order. */
export class LatestRead {
  #started = 0;
  #taken = 0;

  /** Takes a value that is newer than any read that has begun. */
  put<T>(value: T, take: (value: T) => void): void {
    this.#taken = ++this.#started;
    take(value);
  }

  /** Reads, and takes the value. Rejects as `read` does. Once the value of a later read was taken, does neither. */
  async run<T>(read: () => Promise<T>, take: (value: T) => void): Promise<void> {
    const number = ++this.#started;
    const isOutdated = () => number < this.#taken;
    try {
      const value = await read();
      if (isOutdated()) return;
      this.#taken = number;
      take(value);
    } catch (thrown) {
      if (!isOutdated()) throw thrown;
    }
  }
}
