/** The table of a run, for the terminal and for docs/benchmarks.md. */
import type { Figure } from "./bench.ts";

/** What is said of a run beside its figures. */
export interface RunFacts {
  rounds: number;
  cores: number;
  /** Mean number of running tasks over the last minute, when the run began. */
  load: number;
  denoVersion: string;
  /** Operating system and processor family. */
  platform: string;
  /** `2026-11-21` */
  date: string;
}

/** Gives one figure as a line of text. */
export function figureLine(figure: Figure): string {
  const mark = figure.isReached === undefined ? " " : figure.isReached ? "✓" : "✗";
  return `${mark} ${figure.what}: ${figure.own} against ${figure.limit}${
    figure.ratio === undefined ? "" : ` = ${figure.ratio.toFixed(2)} ×`
  } (${figure.target})`;
}

/** Gives the whole document. */
export function documentOf(figures: Figure[], facts: RunFacts): string {
  const header = ["what", "Parlor", "counterpart", "ratio", "must reach", "reached"];
  const rows = figures.map((figure) => [
    figure.what,
    figure.own,
    figure.limit === "–" ? "–" : `${figure.limit} (${figure.counterpart})`,
    figure.ratio === undefined ? "–" : `${figure.ratio.toFixed(2)} ×`,
    figure.target,
    figure.isReached === undefined ? "–" : figure.isReached ? "yes" : "**no**",
  ]);
  const table = [header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
  return `# Benchmarks

Written by \`deno task bench\`; every figure is compared with a bare program in tests/bench/counterparts that does only that
work, in turns within the same run: the ratio is what counts, the times belong to the machine. Figures are medians of
${facts.rounds} rounds, ratios the median of the rounds' ratios. \`deno task bench [row …] [--rounds N]\` measures single rows and
leaves this file alone.

${facts.cores} cores (${facts.platform}), load ${
    facts.load.toFixed(1)
  } at the beginning, Deno ${facts.denoVersion}, ${facts.date}.

${table}

Parlor runs as a process of its own from source, with the permissions and settings of \`deno task start\`, its log going
nowhere. Model server and clients are processes beside it on the same cores. Replies belong to conversations, so each turn is
on disk before the model is asked, each batch is journalled before it is sent, and each reply is stored; in the flood, what
was stored and what the client got are compared with what was sent, letter by letter. The first token's time is less the
time straight from the model server. A chunk's lag is how much longer it was on its way from the model server to the client
than the promptest of its stream, counted while all streams run; how late the model server itself sent it is not counted.
`;
}
