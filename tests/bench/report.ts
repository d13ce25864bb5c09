/** The table of a run, for the terminal and for docs/benchmarks.md. */
import type { Figure } from "./bench.ts";
import type { MachineUse } from "./machine.ts";

/** The figures of one row of a run. */
export interface MeasuredRow {
  figures: Figure[];
  use: MachineUse;
}

/** Facts about a run. */
export interface RunFacts {
  rounds: number;
  cores: number;
  /** Load average over the last minute, at the start of the run. */
  load: number;
  denoVersion: string;
  /** Operating system and processor family. */
  platform: string;
  /** `2026-11-21` */
  date: string;
}

/** Formats one figure as a line of text. */
export function formatFigure(figure: Figure): string {
  const mark = figure.isReached === undefined ? " " : figure.isReached ? "✓" : "✗";
  return `${mark} ${figure.what}: ${figure.own} against ${figure.limit}${
    figure.ratio === undefined ? "" : ` = ${figure.ratio.toFixed(2)} ×`
  } (${figure.target})`;
}

/** Returns the sections of docs/benchmarks.md that stay, with the blank line before the first: all that have a heading. */
export function findSections(document: string): string {
  const at = document.search(/^\n## /m);
  return at < 0 ? "" : document.slice(at);
}

/** Formats docs/benchmarks.md, without the sections that stay. */
export function formatDocument(measured: MeasuredRow[], facts: RunFacts): string {
  const header = ["Measurement", "Parlor", "Counterpart", "Ratio", "Target", "Met", "Load"];
  const rows = measured.flatMap(({ figures, use }) =>
    figures.map((figure) => [
      figure.what,
      figure.own,
      figure.limit === "–" ? "–" : `${figure.limit} (${figure.counterpart})`,
      figure.ratio === undefined ? "–" : `${figure.ratio.toFixed(2)} ×`,
      figure.target,
      figure.isReached === undefined ? "–" : figure.isReached ? "yes" : "**no**",
      use.load.map((value) => value.toFixed(1)).join(" → "),
    ])
  );
  const table = [header, header.map(() => "---"), ...rows].map((cells) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`
  ).join("\n");
  return `# Benchmarks

Parlor compared with bare programs (\`tests/bench/counterparts\`) that do only the work being measured. Both run alternately
in one run: the ratio matters, the times depend on the machine. Values are medians of ${facts.rounds} rounds, ratios are medians of
the rounds' ratios. [Decision 0013](decisions/0013-missed-benchmarks.md) explains the targets we miss.

${facts.cores} cores (${facts.platform}), load ${
    facts.load.toFixed(1)
  } at the start, Deno ${facts.denoVersion}, ${facts.date}.

"Load" is the load average over a minute, before and after the row; the row's own programs count. In no row did other programs
use more than ${
    Math.round(100 * Math.max(0, ...measured.map(({ use }) => use.elsewhere)))
  } % of one processor; a run with more than 25 % isn't written. All values are from one run.

${table}

\`deno task bench\` writes this page. \`deno task bench [row …] [--rounds N]\` measures single rows and doesn't change it.

Parlor runs from source in its own process, with the permissions and settings of \`deno task start\`. Model server and clients
are separate processes on the same cores. Replies belong to conversations: each user message is on disk before the model is
called, each batch is journaled before it's sent, and each reply is stored. In the flood test, the stored and received text are
compared with what was sent, character by character. Time to first token excludes the time of the model server. Chunk lag is how
much longer a chunk took from the model server to the client than the fastest of its stream, while all streams run.
`;
}
