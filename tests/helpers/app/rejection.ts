/** Returns the error that a function throws. Fails if it throws nothing. */
export function rejectionOf(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("expected an error, none was thrown");
}
