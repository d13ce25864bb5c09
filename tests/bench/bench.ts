/** What every row of the table is given, and what it gives back. */
import type { Program, Programs } from "./child.ts";

/** The surroundings of a run. */
export interface Bench {
  programs: Programs;
  /** A folder of this run's own; removed at its end. */
  folder: string;
  /** Rounds of every comparison, at least 5 for a figure that counts. */
  rounds: number;
  /** Says what is going on, on standard error. */
  progress(text: string): void;
}

/** One line of the table. */
export interface Figure {
  what: string;
  own: string;
  /** What the counterpart reached, `–` where there is none. */
  limit: string;
  /** What the counterpart is. */
  counterpart: string;
  ratio?: number;
  /** The target; `–` for rows without one. */
  target: string;
  isReached?: boolean;
}

/** One thing that is measured; may make several lines. */
export interface Row {
  name: string;
  about: string;
  run(bench: Bench): Promise<Figure[]>;
}

const HERE = new URL("./", import.meta.url);

/** Starts one of the programs of this folder. */
export function startHere(bench: Bench, file: string, ...args: string[]): Promise<Program> {
  return bench.programs.start({
    command: Deno.execPath(),
    args: ["run", "--quiet", "-A", new URL(file, HERE).pathname, ...args],
    name: file,
  });
}

/** Makes a folder of its own for a Parlor or a counterpart. */
export function freshFolder(bench: Bench): Promise<string> {
  return Deno.makeTempDir({ dir: bench.folder });
}

/** Runs a step once to warm up, then once a round. */
export async function eachRound<T>(bench: Bench, name: string, step: () => Promise<T>): Promise<T[]> {
  bench.progress(`${name}: warming up`);
  await step();
  const results: T[] = [];
  for (let round = 1; round <= bench.rounds; round++) {
    results.push(await step());
    bench.progress(`${name}: round ${round} of ${bench.rounds}`);
  }
  return results;
}

/** Gives a line whose target is a ratio. */
export function ratioFigure(
  parts: { what: string; counterpart: string; unit: (value: number) => string; atMost: number },
  { own, limit, ratio }: { own: number; limit: number; ratio: number },
): Figure {
  return {
    what: parts.what,
    own: parts.unit(own),
    limit: parts.unit(limit),
    counterpart: parts.counterpart,
    ratio,
    target: `≤ ${parts.atMost} ×`,
    isReached: ratio <= parts.atMost,
  };
}

/** Writes a time. */
export function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(2) : ms < 100 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

/** Writes a size in memory. */
export function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** Writes a number of bytes. */
export function kibibytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KiB`;
}
