/** The interface of the benchmark's rows. */
import type { Program, Programs } from "./child.ts";

/** The context of a run. */
export interface Bench {
  programs: Programs;
  /** A temporary folder for this run. */
  folder: string;
  /** Rounds of each comparison; at least 5 for published figures. */
  rounds: number;
  /** Reports progress on standard error. */
  progress(text: string): void;
}

/** One line of the table. */
export interface Figure {
  what: string;
  own: string;
  /** The counterpart's figure; `–` without a counterpart. */
  limit: string;
  /** Description of the counterpart. */
  counterpart: string;
  ratio?: number;
  /** The target; `–` for rows without one. */
  target: string;
  isReached?: boolean;
}

/** A measurement, which can produce several lines. */
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

/** Creates a folder for Parlor or a counterpart. */
export function freshFolder(bench: Bench): Promise<string> {
  return Deno.makeTempDir({ dir: bench.folder });
}

/** Runs a step once to warm up, then once per round. */
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

/** Returns a line whose target is a ratio. */
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

/** Formats a time. */
export function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(2) : ms < 100 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

/** Formats an amount of memory. */
export function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** Formats a number of bytes. */
export function kibibytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KiB`;
}
