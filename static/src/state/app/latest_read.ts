/** Reads that may overlap, for example after events in quick succession. Responses can arrive in any order. */
export class LatestRead {
  #started = 0;
  #taken = 0;

  /** Reads, and takes the value unless that of a later read has been taken. Rejects as `read` does. */
  async run<T>(read: () => Promise<T>, take: (value: T) => void): Promise<void> {
    const number = ++this.#started;
    const value = await read();
    if (number < this.#taken) return;
    this.#taken = number;
    take(value);
  }
}
