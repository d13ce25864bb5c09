/** How long the steps of a flow take, for the guide: printed, never judged. */

/** Times since the start. */
export interface Times {
  /** Notes that a step has ended. */
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
