/**
 * Fake llama-server (docs/protocols/llm.md#llamacpp): a separate program that loads,
 * answers `/health` without and everything else with its key, and goes wrong as it is told to.
 */

import { dirname } from "node:path";
import { openFakeLlm } from "./fake_llm.ts";

/** Switches of the fake. */
export type LlamaMode =
  | "good"
  /** Never finishes loading. */
  | "stuck"
  /** Exits at once with a message on standard error. */
  | "broken"
  /** Exits at the first request after it is ready. */
  | "fragile"
  /** Ignores SIGTERM. */
  | "stubborn"
  /** Reports a running reply. */
  | "busy"
  /** Keeps its replies, and writes the second half of each when the file `go-on` is in the folder of the model. */
  | "keeps"
  /** Becomes ready, then no longer responds to `/health`. */
  | "hung";

/** Writes the program into a folder. @returns Its path. */
export async function fakeLlamaServer(folder: string, mode: LlamaMode): Promise<string> {
  const path = `${folder}/llama-server`;
  const command = `exec "${Deno.execPath()}" run --quiet -A "${import.meta.filename}" ${mode} "$@"`;
  await Deno.writeTextFile(path, `#!/bin/sh\n${command}\n`, { mode: 0o755 });
  return path;
}

if (import.meta.main) serve(Deno.args[0] as LlamaMode);

function serve(mode: LlamaMode): void {
  const option = (name: string) => Deno.args[Deno.args.indexOf(name) + 1] ?? "";
  console.error(`main: loading model from ${option("--model")}, context ${option("--ctx-size")}`);
  if (mode === "broken") {
    console.error("error: tensor 'blk.0' has wrong shape");
    Deno.exit(1);
  }
  const key = Deno.env.get("LLAMA_API_KEY");
  Deno.addSignalListener("SIGTERM", () => mode === "stubborn" ? console.error("no") : Deno.exit(0));
  if (mode === "keeps") return void writeInHalves(Number(option("--port")), key, `${dirname(option("--model"))}/go-on`);
  let looks = 0;
  Deno.serve({ hostname: "127.0.0.1", port: Number(option("--port")), onListen: () => {} }, (request) => {
    const { pathname } = new URL(request.url);
    const isReady = mode !== "stuck" && ++looks > 1;
    if (pathname === "/health") {
      if (mode === "hung" && looks > 2) return new Promise<Response>(() => {});
      if (mode === "fragile" && looks > 2) Deno.exit(3);
      return Response.json({ status: isReady ? "ok" : "loading" }, { status: isReady ? 200 : 503 });
    }
    if (request.headers.get("authorization") !== `Bearer ${key}`) {
      return Response.json({ error: { message: "Invalid API Key", type: "authentication_error" } }, { status: 401 });
    }
    if (pathname === "/slots") return Response.json([{ id: 0, is_processing: mode === "busy" }]);
    if (pathname === "/v1/chat/completions") return reply(option("--alias"));
    return Response.json({ object: "list", data: [{ id: option("--alias") }] });
  });
}

async function writeInHalves(port: number, apiKey: string | undefined, goOn: string): Promise<void> {
  const llm = await openFakeLlm({ personality: "llama.cpp", apiKey, port, switches: { manual: "on" } });
  for (;;) {
    const call = await llm.nextCall();
    await call.emit("The sea ");
    while (!await Deno.stat(goOn).then(() => true, () => false)) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await call.emit("is blue.");
    await call.finish();
  }
}

/** Streams a fixed reply. */
function reply(model: string): Response {
  const chunk = (delta: Record<string, string | null>, finish_reason: string | null) =>
    `data: ${
      JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1,
        model,
        choices: [{ index: 0, delta, finish_reason }],
      })
    }\n\n`;
  const deltas = ["Good evening", " from this", " machine"].map((content) => chunk({ content }, null));
  const body = [chunk({ role: "assistant", content: null }, null), ...deltas, chunk({}, "stop"), "data: [DONE]\n\n"];
  return new Response(body.join(""), { headers: { "content-type": "text/event-stream" } });
}
