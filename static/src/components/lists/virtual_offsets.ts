/** The positions of the rows of a virtual list. */

/** Returns the upper edge of each row, and as last entry the total height. */
export function computeOffsets<T>(items: readonly T[], heightOf: (item: T) => number): Float64Array {
  const offsets = new Float64Array(items.length + 1);
  for (let index = 0; index < items.length; index++) offsets[index + 1] = offsets[index]! + heightOf(items[index]!);
  return offsets;
}

/** Returns the row at a position; the first or last for positions outside, 0 for an empty list. */
export function findRowAt(offsets: Float64Array, y: number): number {
  let [low, high] = [0, Math.max(0, offsets.length - 2)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle]! <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}
