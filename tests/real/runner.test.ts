/** A model in models/, run by a real llama.cpp server that Parlor starts: a reply, Stop, a crash, and Parlor's own end. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { framesOf, understand } from "../helpers/app/chat_client.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { findProcesses, isGone } from "../helpers/processes/processes.ts";
import { realPart } from "./helpers/real_part.ts";
import { readReply } from "./helpers/reply_stream.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
const MODEL = "gemma-3-270m-q4_k_m.gguf";
const SLOW_MS = 300_000;

interface Status {
  state: string;
  program: string | null;
  path?: string;
  context_size?: number;
  memory_bytes?: number;
  error?: string;
  log: string[];
}

interface Message {
  content: string;
  status: string;
  continued_after_restart?: true;
}

interface Connection {
  id: string;
  base_url: string;
  active: boolean;
  has_key: boolean;
  context_size?: number;
}

describe.skipIf(INSTALLED === undefined)("with a real llama.cpp server of Parlor's own", { timeout: SLOW_MS }, () => {
  let dataDir: string;
  let args: string[];
  let parlor: ChildServer;

  const status = () => parlor.json<Status>("GET", "/api/models/local/runner");
  const untilState = (state: string) =>
    expect.poll(async () => (await status()).state, { timeout: SLOW_MS, interval: 200 }).toBe(state);
  const ask = (id: string) =>
    parlor.request("POST", "/api/chat", {
      conversation_id: id,
      user_message_id: `${id}-u`,
      assistant_message_id: `${id}-a`,
      messages: [{ role: "user", content: "Tell me a story about a lighthouse" }],
      max_tokens: 20,
      ignore_eos: true,
      stop: ["<never written>"],
    });
  const localConnection = async () =>
    (await parlor.json<Connection[]>("GET", "/api/connections")).find(({ id }) => id === "local")!;
  const serverPid = async () => {
    const port = new URL((await localConnection()).base_url).port;
    const [pid] = await findProcesses(`--port ${port} --ctx-size`);
    if (pid === undefined) throw new Error(`No process listens for the model on port ${port}`);
    return pid;
  };

  beforeAll(async () => {
    dataDir = await Deno.makeTempDir({ prefix: "parlor-real-" });
    await Deno.mkdir(`${dataDir}/models`, { mode: 0o700 });
    await Deno.copyFile(`${INSTALLED}/model/${MODEL}`, `${dataDir}/models/${MODEL}`);
    const [program] = await Array.fromAsync(Deno.readDir(`${INSTALLED}/bin`));
    args = ["--llama-server-path", `${INSTALLED}/bin/${program!.name}`];
    parlor = await startChildServer({ dataDir, args });
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.kill("SIGTERM");
    if (dataDir !== undefined) await Deno.remove(dataDir, { recursive: true });
  }, SLOW_MS);

  test("the file's header describes the model", async () => {
    expect(await parlor.json("GET", "/api/models/local")).toEqual([expect.objectContaining({
      path: MODEL,
      format: "gguf",
      role: "model",
      architecture: "gemma3",
      quantization: "Q4_K_M",
      context_size: 32768,
      layers: 18,
      parameters: expect.closeTo(268e6, -7),
    })]);
  });

  test("run, a real reply through the connection, stop", async () => {
    const body = { path: MODEL, context_size: 1024, activate: true };
    expect(await parlor.json("POST", "/api/models/local/run", body)).toMatchObject({ state: "starting", path: MODEL });
    await untilState("running");
    expect(await localConnection()).toMatchObject({ active: true, has_key: true, context_size: 1024 });
    expect((await status()).log.join("\n")).toMatch(/llama|model/);
    const seen = await readReply(await ask("c1"));
    expect(seen.isDone).toBe(true);
    expect(seen.text.length).toBeGreaterThan(20);
    const { base_url } = await localConnection();
    expect((await fetch(`${base_url}/models`)).status, "without its key it tells nothing").toBe(401);

    const pid = await serverPid();
    expect(await parlor.json("POST", "/api/models/local/stop", {})).toMatchObject({ state: "stopped" });
    expect(await isGone(pid)).toBe(true);
    const refused = await ask("c2");
    expect([refused.status, (await refused.json()).error.message]).toEqual([503, expect.stringMatching(/Start it/)]);
  });

  test("a server that dies is started again and answers at its new address", async () => {
    await parlor.json("POST", "/api/models/local/run", { path: MODEL, context_size: 512 });
    await untilState("running");
    Deno.kill(await serverPid(), "SIGKILL");
    await expect.poll(async () => (await parlor.json<{ restarts: number }>("GET", "/api/models/local/runner")).restarts)
      .toBe(1);
    await untilState("running");
    expect((await readReply(await ask("c3"))).isDone).toBe(true);
  });

  const readMessage = async (id: string) =>
    (await parlor.json<{ messages: Message[] }>("GET", `/api/conversations/${id}`)).messages.at(-1)!;

  test("a reply goes on in the same server after Parlor was killed, to the text that it has without a kill", async () => {
    const question = {
      context: "server",
      messages: [{ role: "user", content: "Tell me a story about a lighthouse" }],
      max_tokens: 150,
      ignore_eos: true,
      stop: ["<never written>"],
      temperature: 0,
      seed: 7,
    };
    const askFor = (id: string) =>
      parlor.request("POST", "/api/chat", {
        conversation_id: id,
        user_message_id: `${id}-u`,
        assistant_message_id: `${id}-a`,
        ...question,
      });
    await parlor.json("PATCH", "/api/settings", { auto_title: false, auto_summary: false });
    const whole = await readReply(await askFor("whole"));
    const pid = await serverPid();
    const frames = framesOf(await askFor("cut"));
    let text = "";
    while (text.length < 100) text += understand([(await frames.next()).value!]).text;
    await parlor.kill("SIGKILL");
    expect(await isGone(pid)).toBe(false);
    parlor = await startChildServer({ dataDir, args });
    await expect.poll(async () => (await readMessage("cut")).status, { timeout: SLOW_MS }).toBe("complete");
    expect(await readMessage("cut")).toMatchObject({ content: whole.text });
    expect((await readMessage("cut")).continued_after_restart).toBeUndefined();
    expect(await serverPid()).toBe(pid);
    expect((await status()).state).toBe("running");
  });

  test("the end of Parlor is the end of the model server", async () => {
    const pid = await serverPid();
    await parlor.kill("SIGTERM");
    expect(await isGone(pid)).toBe(true);
  });
});
