/** Sends changes one after another: requests in flight at the same time may arrive in any order. */
export class ChangeQueue {
  #last: Promise<void> | undefined;

  /** Sends at once if nothing is in flight, else once all earlier changes have been answered. */
  run<T>(send: () => Promise<T>): Promise<T> {
    const sent = this.#last === undefined ? send() : this.#last.then(send);
    const end = () => {
      if (this.#last === ended) this.#last = undefined;
    };
    const ended: Promise<void> = sent.then(end, end);
    this.#last = ended;
    return sent;
  }

  /** Resolves when all changes so far have been answered, also those that failed. */
  async settled(): Promise<void> {
    await this.#last;
  }
}
