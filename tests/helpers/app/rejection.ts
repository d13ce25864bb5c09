/** Gives what a function throws, for a closer look than `toThrow` takes. Fails when it throws nothing. */
export function rejectionOf(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("expected an error, none was thrown");
}
