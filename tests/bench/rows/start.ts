/** Time from the command to the first response, and memory of an idle server. */
import {
  type Bench,
  eachRound,
  type Figure,
  freshFolder,
  mebibytes,
  milliseconds,
  ratioFigure,
  type Row,
} from "../bench.ts";
import { executableHere, helloExecutable } from "../executable.ts";
import type { ProgramOptions } from "../child.ts";
import { HttpConnection } from "../http_connection.ts";
import { parlorCommand } from "../parlor.ts";
import { residentBytes } from "../process_facts.ts";
import { compare, median } from "../stats.ts";
import { fileURLToPath } from "node:url";

/** Delay before memory is measured, so that garbage of the start has been collected. */
const IDLE_MS = 2_000;
const ROOT = new URL("../../../", import.meta.url);
/** Target of the start. */
const TASK_MS = 2_000;
const HELLO = new URL("../counterparts/hello.ts", import.meta.url).pathname;
const HELLO_FROM_SOURCE = { command: Deno.execPath(), args: ["run", "--quiet", "--allow-net", HELLO] };

/** Start to first response. */
export const startRow: Row = {
  name: "start",
  about: "start to first response, from source and as executable",
  async run(bench) {
    const figures = [
      await startFigure(
        bench,
        "from source",
        await parlorCommand({ dataDir: await freshFolder(bench) }),
        HELLO_FROM_SOURCE,
      ),
      ...await taskFigures(bench),
    ];
    const executable = await executableHere();
    if (executable === undefined) {
      return [
        ...figures,
        notBuilt("start to first response, executable", "≤ 8 ×"),
        notBuilt("first start on an empty folder, executable", "–"),
      ];
    }
    const command = await parlorCommand({ dataDir: await freshFolder(bench), executable });
    const hello = await helloExecutable(bench, HELLO) ?? HELLO_FROM_SOURCE;
    return [
      ...figures,
      await startFigure(bench, "executable", command, hello),
      await firstStartFigure(bench, executable, hello),
    ];
  },
};

/** Memory of an idle server. */
export const memoryRow: Row = {
  name: "memory",
  about: "idle memory",
  async run(bench) {
    const own = await parlorCommand({ dataDir: await freshFolder(bench) });
    const rounds = await eachRound(bench, "memory", async () => {
      const programs = await Promise.all([answering(bench, own, "/healthz"), answering(bench, HELLO_FROM_SOURCE, "/")]);
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
      const [ownBytes, limitBytes] = await Promise.all(programs.map(({ pid }) => residentBytes(pid)));
      await Promise.all(programs.map((program) => program.stop()));
      return { own: ownBytes!, limit: limitBytes! };
    });
    const parts = { what: "idle memory (RSS)", counterpart: "Deno.serve hello", unit: mebibytes, atMost: 3 };
    return [ratioFigure(parts, compare(rounds))];
  },
};

type Command = Pick<ProgramOptions, "command" | "args">;

async function startFigure(bench: Bench, how: string, own: Command, hello: Command): Promise<Figure> {
  const rounds = await eachRound(bench, `start, ${how}`, async () => ({
    own: await timeToAnswer(bench, own, "/healthz"),
    limit: await timeToAnswer(bench, hello, "/"),
  }));
  const started = hello === HELLO_FROM_SOURCE ? "deno run" : "compiled";
  const parts = { counterpart: `Deno.serve hello, ${started}`, unit: milliseconds, atMost: 8 };
  return ratioFigure({ what: `start to first response, ${how}`, ...parts }, compare(rounds));
}

/** The README's command, from Enter to the first response, with an existing folder. */
async function taskFigures(bench: Bench): Promise<Figure[]> {
  const task = ["task", "--cwd", fileURLToPath(ROOT), "start", "--port", "0", "--data-dir", await freshFolder(bench)];
  const own = { command: Deno.execPath(), args: task };
  const folder = await freshFolder(bench);
  await Deno.writeTextFile(
    `${folder}/deno.json`,
    JSON.stringify({ tasks: { start: `deno run --quiet --allow-net ${HELLO}` } }),
  );
  const hello = { command: Deno.execPath(), args: ["task", "--cwd", folder, "start"] };
  const rounds = await eachRound(bench, "start, deno task start", async () => ({
    own: await timeToAnswer(bench, own, "/healthz"),
    limit: await timeToAnswer(bench, hello, "/"),
  }));
  const withDeno = compare(rounds);
  const figures: Figure[] = [{
    ...ratioFigure({
      what: "deno task start a second time, from the command to the first response",
      counterpart: "Deno.serve hello as a task",
      unit: milliseconds,
      atMost: Infinity,
    }, withDeno),
    target: `≤ ${TASK_MS / 1000} s`,
    isReached: withDeno.own <= TASK_MS,
  }];
  const npx = { command: "npx", args: ["-y", `deno@${Deno.version.deno}`, ...task] };
  const what = "npx -y deno task start a second time, from the command to the first response";
  const hasNpx = await new Deno.Command("npx", { args: [...npx.args.slice(0, 2), "--version"] }).output()
    .then(({ success }) => success, () => false);
  if (!hasNpx) return [...figures, { what, own: "npx not found", limit: "–", counterpart: "–", target: "–" }];
  const times = await eachRound(bench, "start, npx", () => timeToAnswer(bench, npx, "/healthz"));
  const ownMs = median(times);
  return [...figures, {
    what,
    own: milliseconds(ownMs),
    limit: "–",
    counterpart: "–",
    target: `≤ ${TASK_MS / 1000} s`,
    isReached: ownMs <= TASK_MS,
  }];
}

/** The first start, which creates keys and database. */
async function firstStartFigure(bench: Bench, executable: string, hello: Command): Promise<Figure> {
  const rounds = await eachRound(bench, "first start, executable", async () => ({
    own: await timeToAnswer(bench, await parlorCommand({ dataDir: await freshFolder(bench), executable }), "/healthz"),
    limit: await timeToAnswer(bench, hello, "/"),
  }));
  const parts = { counterpart: "Deno.serve hello", unit: milliseconds, atMost: Infinity };
  const figure = ratioFigure({ what: "first start on an empty folder, executable", ...parts }, compare(rounds));
  return { ...figure, target: "–", isReached: undefined };
}

async function timeToAnswer(bench: Bench, command: Command, path: string): Promise<number> {
  const beganAt = performance.now();
  const program = await answering(bench, command, path);
  const ms = performance.now() - beganAt;
  await program.stop();
  return ms;
}

async function answering(bench: Bench, command: Command, path: string) {
  const program = await bench.programs.start({ ...command, name: path === "/" ? "Deno.serve hello" : "Parlor" });
  using connection = await HttpConnection.open(program.port);
  await connection.bytes("GET", path);
  return program;
}

/** The line of a measurement whose executable is missing. */
export function notBuilt(what: string, target: string): Figure {
  return { what, own: "not built: deno task build", limit: "–", counterpart: "–", target };
}
