/**
 * Measures Parlor against bare programs: `deno task bench [row …] [--rounds N]`. Without names all rows run, and
 * docs/benchmarks.md is written, unless the machine was busy with something else.
 */
import type { Bench, Figure, Row } from "./bench.ts";
import { Programs } from "./child.ts";
import { formatUse, type MachineUse, MAX_ELSEWHERE, MAX_LOAD, watchMachine } from "./machine.ts";
import { findSections, formatDocument, formatFigure, type MeasuredRow } from "./report.ts";
import { avatarRow } from "./rows/avatar.ts";
import { cardsRow } from "./rows/cards.ts";
import { talkRow } from "./rows/talk.ts";
import { enginesRow } from "./rows/engines.ts";
import { firstAudioRow } from "./rows/first_audio.ts";
import { chunkLagRow, largeLagRow } from "./rows/chunk_lag.ts";
import { documentRow } from "./rows/document.ts";
import { downloadRow } from "./rows/download.ts";
import { firstTokenRow } from "./rows/first_token.ts";
import { goingOnRow } from "./rows/going_on.ts";
import { importRow } from "./rows/import.ts";
import { largeMemoryRow } from "./rows/large_memory.ts";
import { listsRow } from "./rows/lists.ts";
import { lorebookRow } from "./rows/lorebook.ts";
import { outboundRow } from "./rows/outbound.ts";
import { oneMessageRow } from "./rows/one_message.ts";
import { pageRow } from "./rows/page.ts";
import { cpuRow, floodRow } from "./rows/relay_cpu.ts";
import { saveLoadRow } from "./rows/save_load.ts";
import { scrollRow } from "./rows/scroll.ts";
import { searchRow } from "./rows/search.ts";
import { sizeRow } from "./rows/size.ts";
import { memoryRow, startRow } from "./rows/start.ts";
import { thumbnailsRow } from "./rows/thumbnails.ts";

const ROWS: Row[] = [
  sizeRow,
  startRow,
  memoryRow,
  largeMemoryRow,
  firstTokenRow,
  cpuRow,
  floodRow,
  saveLoadRow,
  oneMessageRow,
  listsRow,
  cardsRow,
  avatarRow,
  thumbnailsRow,
  lorebookRow,
  downloadRow,
  outboundRow,
  goingOnRow,
  firstAudioRow,
  talkRow,
  searchRow,
  importRow,
  documentRow,
  chunkLagRow,
  largeLagRow,
  pageRow,
  enginesRow,
  scrollRow,
];
const DOCUMENT = new URL("../../docs/benchmarks.md", import.meta.url);
const DEFAULT_ROUNDS = 5;
/** Time after which a run counts as hung. */
const LIMIT_MS = 60 * 60_000;
const SIGNALS = ["SIGINT", "SIGTERM"] as const;

if (import.meta.main) Deno.exitCode = await run(Deno.args);

/** Runs the named rows and returns the exit code. */
async function run(args: string[]): Promise<number> {
  const wanted = parseArgs(args);
  if (typeof wanted === "string") {
    console.error(wanted);
    return 2;
  }
  if (Deno.build.os !== "linux") {
    console.error("Can't measure here: CPU time and memory of processes are read from Linux's /proc");
    return 2;
  }
  const load = Deno.loadavg()[0]!;
  const programs = new Programs();
  const folder = await Deno.makeTempDir({ prefix: "parlor-bench-" });
  const end = (why: string) => {
    programs.killAll();
    Deno.removeSync(folder, { recursive: true });
    console.error(why);
    Deno.exit(1);
  };
  const limit = setTimeout(() => end(`The run did not end within ${LIMIT_MS / 60_000} minutes`), LIMIT_MS);
  const interrupt = () => end("Interrupted");
  for (const signal of SIGNALS) Deno.addSignalListener(signal, interrupt);
  try {
    const bench: Bench = { programs, folder, rounds: wanted.rounds, progress: (text) => console.error(`  ${text}`) };
    const measured: MeasuredRow[] = [];
    const failed: string[] = [];
    for (const row of wanted.rows) {
      const look = watchMachine();
      let figures: Figure[];
      try {
        figures = await row.run(bench);
      } catch (error) {
        // The other rows are still measured.
        console.error(`    ${row.name} failed: ${error instanceof Error ? error.message : error}`);
        failed.push(row.name);
        programs.killAll();
        continue;
      }
      const use = look();
      for (const figure of figures) console.log(formatFigure(figure));
      console.log(`    ${row.name}: ${formatUse(use)}`);
      measured.push({ figures, use });
    }
    if (wanted.rows.length < ROWS.length) return failed.length === 0 ? 0 : 1;
    const refusal = failed.length > 0
      ? `${failed.join(", ")} failed`
      : findRefusal(measured.map(({ use }, n) => ({ name: wanted.rows[n]!.name, use })), wanted.rounds, load);
    if (refusal === undefined) await writeDocument(measured, wanted.rounds, load);
    else console.error(`docs/benchmarks.md stays as it is: ${refusal}`);
    return refusal === undefined ? 0 : 1;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  } finally {
    clearTimeout(limit);
    for (const signal of SIGNALS) Deno.removeSignalListener(signal, interrupt);
    programs.killAll();
    await Deno.remove(folder, { recursive: true });
  }
}

function parseArgs(args: string[]): { rows: Row[]; rounds: number } | string {
  const names: string[] = [];
  let rounds = DEFAULT_ROUNDS;
  for (let n = 0; n < args.length; n++) {
    if (args[n] === "--rounds") rounds = Number(args[++n]);
    else names.push(args[n]!);
  }
  if (!Number.isInteger(rounds) || rounds < 1) return "Can't read --rounds: it takes a whole number from 1";
  const unknown = names.filter((name) => !ROWS.some((row) => row.name === name));
  if (unknown.length > 0) {
    const known = ROWS.map((row) => `  ${row.name.padEnd(12)} ${row.about}`).join("\n");
    return `Unknown row ${unknown.join(", ")}; known are\n${known}`;
  }
  return { rows: names.length === 0 ? ROWS : ROWS.filter((row) => names.includes(row.name)), rounds };
}

/** Returns why the figures of a run must not be written; `undefined` if they can be. */
function findRefusal(
  rows: readonly { name: string; use: MachineUse }[],
  rounds: number,
  load: number,
): string | undefined {
  if (rounds < DEFAULT_ROUNDS) return `${rounds} rounds are fewer than ${DEFAULT_ROUNDS}`;
  if (load > MAX_LOAD) return `the load was ${load.toFixed(1)} at the start, more than ${MAX_LOAD}`;
  const disturbed = rows.filter(({ use }) => use.elsewhere > MAX_ELSEWHERE).map(({ name, use }) =>
    `${name} (${formatUse(use)})`
  );
  return disturbed.length === 0 ? undefined : `other programs ran during ${disturbed.join(", ")}`;
}

async function writeDocument(rows: MeasuredRow[], rounds: number, load: number): Promise<void> {
  const text = formatDocument(rows, {
    rounds,
    load,
    cores: navigator.hardwareConcurrency,
    denoVersion: Deno.version.deno,
    platform: `${Deno.build.os}, ${Deno.build.arch}`,
    date: new Date().toISOString().slice(0, 10),
  });
  const sections = findSections(await Deno.readTextFile(DOCUMENT).catch(() => ""));
  await Deno.writeTextFile(DOCUMENT, text + sections);
  console.error("Written to docs/benchmarks.md");
}
