/**
 * A model server that Parlor started outlives it while it writes a reply.
 *
 * @slow Each test starts the server twice.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { framesOf, understand, until } from "../helpers/app/chat_client.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { fakeLlamaServer } from "../helpers/fakes/llm/fake_llama_server.ts";
import { type TempFolder, tempFolder } from "../helpers/files/storage_folder.ts";
import { ggufFile } from "../helpers/files/gguf_file.ts";
import { isGone } from "../helpers/processes/processes.ts";

const MODEL = "x-Q4_K_M.gguf";

interface Message {
  id: string;
  content: string;
  status: string;
  continued_after_restart?: true;
}

describe.skipIf(Deno.build.os === "windows")("with a model server of Parlor's own", () => {
  let folder: TempFolder;
  let dataDir: string;
  let args: string[];
  let parlor: ChildServer;

  beforeEach(async () => {
    folder = await tempFolder();
    dataDir = folder.file("data");
    await Deno.mkdir(`${dataDir}/models`, { recursive: true, mode: 0o700 });
    await Deno.chmod(dataDir, 0o700);
    await Deno.writeFile(`${dataDir}/models/${MODEL}`, ggufFile());
    args = ["--llama-server-path", await fakeLlamaServer(folder.path, "keeps")];
    parlor = await startChildServer({ dataDir, args });
    await parlor.json("PATCH", "/api/settings", { auto_title: false, auto_summary: false });
    await parlor.json("POST", "/api/models/local/run", { path: MODEL, activate: true });
    await until(async () => (await state()) === "running", "the model runs");
  });
  afterEach(async () => {
    await parlor.kill("SIGTERM");
    // A server that is still left ends with the folder.
    await folder[Symbol.asyncDispose]();
  });

  const state = async () => (await parlor.json<{ state: string }>("GET", "/api/models/local/runner")).state;
  const serverPid = async () =>
    JSON.parse(await Deno.readTextFile(`${dataDir}/model-server/server.json`)).pid as number;
  const readMessage = async () =>
    (await parlor.json<{ messages: Message[] }>("GET", "/api/conversations/c1")).messages.at(-1)!;

  /** Asks, and reads the first half of the reply. */
  async function ask(): Promise<void> {
    const frames = framesOf(
      await parlor.request("POST", "/api/chat", {
        conversation_id: "c1",
        user_message_id: "u1",
        assistant_message_id: "a1",
        context: "server",
        messages: [{ role: "user", content: "What color is the sea?" }],
      }),
    );
    while (!understand([(await frames.next()).value!]).text.includes("sea"));
  }

  test.for(["SIGKILL", "SIGTERM"] as const)("its reply goes on after %s, in the same process", async (signal) => {
    await ask();
    const pid = await serverPid();
    await parlor.kill(signal);
    expect(await isGone(pid)).toBe(false);
    await Deno.writeTextFile(`${dataDir}/models/go-on`, "");
    parlor = await startChildServer({ dataDir, args });
    await until(async () => (await readMessage()).status === "complete", "the reply is complete");
    expect(await readMessage()).toMatchObject({ content: "The sea is blue." });
    expect((await readMessage()).continued_after_restart).toBeUndefined();
    expect(await serverPid()).toBe(pid);
    // Nothing is left at work, so it ends with Parlor.
    await parlor.kill("SIGTERM");
    expect(await isGone(pid)).toBe(true);
  });

  test("is taken over also if nobody asks for it, and stopped when its model is deleted", async () => {
    const pid = await serverPid();
    await parlor.kill();
    parlor = await startChildServer({ dataDir, args });
    await until(() => parlor.logs.some((line) => line.includes("Took over the local model")), "it's taken over");
    await parlor.json("DELETE", `/api/models/local?path=${MODEL}`);
    expect([await isGone(pid), await parlor.json("GET", "/api/models/local"), await state()]).toEqual([
      true,
      [],
      "stopped",
    ]);
  });
});
