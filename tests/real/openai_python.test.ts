/** OpenAI's own client for Python against the OpenAI-compatible API. */
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { openOpenAiApp, saveMira } from "../helpers/app/openai_app.ts";
import { readTexts } from "../helpers/files/doc_blocks.ts";
import { tryClient } from "../helpers/processes/doc_commands.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_OPENAI_DIR", "openai.sh");
const SCRIPT = fileURLToPath(new URL("tools/openai_client.py", import.meta.url));

describe.skipIf(INSTALLED === undefined)("with OpenAI's client for Python", { timeout: 600_000 }, () => {
  test("it lists models, chats, streams, stores, sends images, embeds, and is refused with a revoked token", async () => {
    await using at = await openOpenAiApp({ pieces: ["Good ", "day"], embeddings: { vector: [0.5, -1.25] } });
    await saveMira(at);
    const { record, token: revoked } = await at.app.services.auth.mintToken("revoked", "openai");
    await at.app.services.auth.revokeToken(record.id);
    const python = new Deno.Command(`${INSTALLED}/venv/bin/python`, {
      args: [SCRIPT, `${at.app.url}/api/v1`, at.token, revoked],
    });
    const { stdout, stderr } = await python.output();
    expect(new TextDecoder().decode(stderr)).toBe("");
    const seen = JSON.parse(new TextDecoder().decode(stdout));
    expect(seen.models).toEqual(expect.arrayContaining(["default", "character:mira", "connection:double/fake-model"]));
    expect(seen).toMatchObject({
      reply: "Good day",
      usage: expect.any(Number),
      conversation: "py",
      streamed: "Good day",
      stream_usage: expect.any(Number),
      embedding: [0.5, -1.25],
      refused: [401, "unauthenticated"],
      unknown: ["model_not_found", "model"],
    });
    const images = at.llm.chats.filter(({ body }) => body.includes("data:image/png;base64,AAAA"));
    expect(images).toHaveLength(1);
  });

  test("the program of docs/guide/openai-api.md prints the reply", async () => {
    const [program] = await readTexts("docs/guide/openai-api.md", "python");
    expect(await tryClient(`${INSTALLED}/venv/bin/python`, ["-c", program!])).toBe("Hello\n");
  });
});
