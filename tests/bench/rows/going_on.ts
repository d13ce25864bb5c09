/** Time from the start of the server to the first new token of a reply that goes on after a kill. */
import { type Bench, eachRound, type Figure, freshFolder, milliseconds, ratioFigure, type Row } from "../bench.ts";
import { HttpConnection } from "../http_connection.ts";
import { Parlor } from "../parlor.ts";
import { compare } from "../stats.ts";
import { framesOf, understand } from "../../helpers/app/chat_client.ts";
import { fakeLlamaServer } from "../../helpers/fakes/llm/fake_llama_server.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { ggufFile } from "../../helpers/files/gguf_file.ts";
import { isGone } from "../../helpers/processes/processes.ts";

const FIRST = "The sea ";
const NEXT = "is blue.";
const MODEL = "x-Q4_K_M.gguf";
const POLL_MS = 20;

/** A model server that keeps its replies, and Parlor in front of it. */
interface Home {
  parlor: Parlor;
  /** Starts Parlor again. */
  start(): Promise<Parlor>;
  /** Asks for a reply whose first half is written. */
  ask(replyId: string): Promise<void>;
  /** Writes the second half, while Parlor is away. */
  goOn(): Promise<void>;
  close(): Promise<void>;
}

/** Start to the first continued token. */
export const goingOnRow: Row = {
  name: "going-on",
  about: "start to the first new token of a reply that goes on after a kill",
  async run(bench) {
    return [
      await goingOnFigure(bench, "llama.cpp", openBesideServer),
      await goingOnFigure(bench, "llama.cpp that Parlor had started", openOwnServer),
    ];
  },
};

async function goingOnFigure(bench: Bench, server: string, open: (bench: Bench) => Promise<Home>): Promise<Figure> {
  const rounds = await eachRound(bench, `going-on, ${server}`, async () => {
    const home = await open(bench);
    try {
      await home.ask("a1");
      await end(home.parlor, "SIGKILL");
      await home.goOn();
      const beganAt = performance.now();
      home.parlor = await home.start();
      await readNext(home.parlor, "a1");
      const own = performance.now() - beganAt;
      await home.parlor.allSettled();
      await end(home.parlor, "SIGKILL");
      return { own, limit: await timeToAnswer(home) };
    } finally {
      await end(home.parlor, "SIGTERM");
      await home.close();
    }
  });
  const what = `start to the first new token of a killed reply, ${server}`;
  const parts = { what, counterpart: "start to first response", unit: milliseconds, atMost: Infinity };
  return { ...ratioFigure(parts, compare(rounds)), target: "–", isReached: undefined };
}

/** Starts Parlor without an unfinished reply. */
async function timeToAnswer(home: Home): Promise<number> {
  const beganAt = performance.now();
  home.parlor = await home.start();
  using connection = await HttpConnection.open(home.parlor.port);
  await connection.bytes("GET", "/healthz");
  return performance.now() - beganAt;
}

async function openBesideServer(bench: Bench): Promise<Home> {
  const dataDir = await freshFolder(bench);
  const llm = await openFakeLlm({ personality: "llama.cpp", switches: { manual: "on" } });
  const start = () => Parlor.open({ programs: bench.programs, dataDir });
  const parlor = await start();
  await parlor.useUpstream(llm.port);
  let call: Awaited<ReturnType<typeof llm.nextCall>>;
  return {
    parlor,
    start,
    async ask(replyId) {
      const answer = await post(parlor, replyId);
      call = await llm.nextCall();
      await call.emit(FIRST);
      await readUntil(answer, FIRST);
    },
    async goOn() {
      await call.emit(NEXT);
      await call.finish();
    },
    close: () => llm.close(),
  };
}

async function openOwnServer(bench: Bench): Promise<Home> {
  const dataDir = await freshFolder(bench);
  await Deno.mkdir(`${dataDir}/models`, { mode: 0o700 });
  await Deno.writeFile(`${dataDir}/models/${MODEL}`, ggufFile());
  const args = ["--llama-server-path", await fakeLlamaServer(await freshFolder(bench), "keeps")];
  const start = () => Parlor.open({ programs: bench.programs, dataDir, args });
  const parlor = await start();
  await parlor.control.json("PATCH", "/api/settings", { auto_title: false });
  await parlor.control.json("POST", "/api/models/local/run", { path: MODEL, activate: true });
  while (true) {
    const { state } = await parlor.control.json<{ state: string }>("GET", "/api/models/local/runner");
    if (state === "running") break;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return {
    parlor,
    start,
    ask: async (replyId) => await readUntil(await post(parlor, replyId), FIRST),
    goOn: () => Deno.writeTextFile(`${dataDir}/models/go-on`, ""),
    close: () => Promise.resolve(), // It ends with Parlor
  };
}

function post(parlor: Parlor, replyId: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${parlor.port}/api/chat`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      conversation_id: "c1",
      user_message_id: "u1",
      assistant_message_id: replyId,
      context: "server",
      messages: [{ role: "user", content: "What color is the sea?" }],
    }),
  });
}

/** Reads the reply as a page does that connects again. */
async function readNext(parlor: Parlor, replyId: string): Promise<void> {
  await readUntil(await fetch(`http://127.0.0.1:${parlor.port}/api/chat/replies/${replyId}`), FIRST + NEXT);
}

async function readUntil(response: Response, expected: string): Promise<void> {
  let text = "";
  for await (const frame of framesOf(response)) {
    text += understand([frame]).text;
    if (text === expected) return;
  }
  throw new Error(`A reply ended with ${JSON.stringify(text)} instead of ${JSON.stringify(expected)}`);
}

async function end(parlor: Parlor, signal: Deno.Signal): Promise<void> {
  Deno.kill(parlor.pid, signal);
  // `stop` would send its signal to the model server, while that is a child of Parlor.
  while (!await isGone(parlor.pid)) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  await parlor.stop();
}
