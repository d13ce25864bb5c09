/** Work that runs a bounded way ahead of what reads its results, which stay in order. */

/** How far work may run ahead, and what must not. */
export interface AheadOptions<T, R> {
  /** Starts the work for an item. */
  run(item: T): Promise<R>;
  /** Returns how much an item counts. */
  getSize(item: T): number;
  /** Returns whether an item has to wait for all results before it, and the source for the item's own. */
  isAlone(item: T): boolean;
  maxCount: number;
  /** Maximum size of all items together. A larger item runs with no other. */
  maxSize: number;
}

/**
 * Yields the results of work in the order of its items. An item counts until the next result is requested.
 *
 * @throws What the source or the work for an item throws, after the results before it.
 */
export async function* runAhead<T, R>(source: AsyncIterable<T>, options: AheadOptions<T, R>): AsyncGenerator<R> {
  const { run, getSize, isAlone, maxCount, maxSize } = options;
  const iterator = source[Symbol.asyncIterator]();
  const queue: { result: Promise<R>; size: number }[] = [];
  let [total, isStopped, isEnded] = [0, false, false];
  let changed = Promise.withResolvers<void>();
  const wake = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };

  async function fill(): Promise<void> {
    for (let next = await iterator.next(); !next.done && !isStopped; next = await iterator.next()) {
      const [size, alone] = [getSize(next.value), isAlone(next.value)];
      const isFull = () => queue.length > 0 && (alone || queue.length >= maxCount || total + size > maxSize);
      while (!isStopped && isFull()) await changed.promise;
      if (isStopped) return;
      const result = run(next.value);
      result.catch(() => {}); // Thrown where it's read.
      queue.push({ result, size });
      total += size;
      wake();
      while (!isStopped && alone && queue.length > 0) await changed.promise;
    }
  }

  const filling = fill().finally(() => {
    isEnded = true;
    wake();
  });
  filling.catch(() => {}); // Thrown at the end.
  try {
    for (;;) {
      while (queue.length === 0 && !isEnded) await changed.promise;
      const first = queue[0];
      if (first === undefined) return await filling;
      yield await first.result;
      queue.shift();
      total -= first.size;
      wake();
    }
  } finally {
    isStopped = true;
    wake();
    // The source may be waiting, so its end isn't awaited.
    iterator.return?.().catch(() => {});
  }
}
