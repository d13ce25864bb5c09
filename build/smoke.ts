/**
 * Tests an executable on the machine it was built for: start, health check, one reply of the demo, passkeys, stop.
 *
 * deno run -A build/smoke.ts dist/parlor-linux-x64
 */
import { strict as assert } from "node:assert";
import { resolve } from "node:path";
import denoConfig from "../deno.json" with { type: "json" };

const READY_WITHIN_MS = 60_000;
const ANSWER_WITHIN_MS = 30_000;

/** Runs all checks. @throws {Error} that names the failed check */
export async function smoke(program: string): Promise<void> {
  const { code, stdout } = await new Deno.Command(program, { args: ["--version"] }).output();
  assert.deepEqual([code, new TextDecoder().decode(stdout).trim()], [0, `Parlor ${denoConfig.version}`]);

  const dataDir = await Deno.makeTempDir({ prefix: "parlor-smoke-" });
  const child = new Deno.Command(program, {
    args: ["--port", "0", "--data-dir", dataDir],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const limit = setTimeout(() => child.kill("SIGKILL"), READY_WITHIN_MS + 3 * ANSWER_WITHIN_MS);
  try {
    const url = await readUrl(child.stdout);
    const ask = (path: string, init: RequestInit = {}) =>
      fetch(url + path, { ...init, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    assert.equal((await ask("/healthz")).status, 204, "the health check");

    const status = await (await ask("/api/auth/status")).json();
    assert.equal(status.passkeys_supported, true, "passkeys on localhost");

    const reply = await ask("/api/chat", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ stream: true, messages: [{ role: "user", content: "Hello" }] }),
    });
    const text = await reply.text();
    assert.equal(reply.status, 200, text);
    assert.match(text, /"content":"[^]*data: \[DONE\]/, "the demo's reply");

    assert.equal((await ask("/")).status, 200, "the page");
  } finally {
    // Windows has no SIGTERM: the process ends immediately, and files can stay open for a moment.
    child.kill("SIGTERM");
    const end = await child.status;
    clearTimeout(limit);
    if (Deno.build.os !== "windows") {
      await Deno.remove(dataDir, { recursive: true });
      assert.equal(end.code, 0, "the exit code of a clean stop");
    }
  }
}

/** Reads standard output until the line with the address, then discards the rest. */
export async function readUrl(stdout: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
  let text = "";
  const url = Promise.withResolvers<string>();
  (async () => {
    for await (const part of stdout.pipeThrough(new TextDecoderStream())) {
      text += part;
      const found = /listening on (http\S+)\n/.exec(text)?.[1];
      if (found !== undefined) url.resolve(found);
    }
    url.reject(new Error(`it ended without listening: ${text}`));
  })();
  return await url.promise;
}

if (import.meta.main) {
  const program = resolve(Deno.args[0] ?? "");
  await smoke(program);
  console.log(`${program} works`);
}
