/** Durations of the steps of a flow, for the guide. They are printed, not checked. */

/** Times since the start. */
export interface Times {
  /** Records the end of a step. */
  note(step: string): void;
  print(): void;
}

/** Starts to measure. */
export function startTimes(): Times {
  const start = performance.now();
  const steps: string[] = [];
  return {
    note: (step) => void steps.push(`${step} ${((performance.now() - start) / 1000).toFixed(1)} s`),
    print: () => console.info(`times: ${steps.join(", ")}`),
  };
}
