/** A document in a chat with a real model: the right passage is in the prompt, and the reply arrives. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeBook } from "../helpers/files/book.ts";
import { addDocument, writePdf } from "../helpers/files/document_files.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { type LlamaServer, startLlama } from "./helpers/llama_server.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
/** A busy machine processes 1,500 tokens in one or two minutes. */
const SLOW_MS = 600_000;

describe.skipIf(INSTALLED === undefined)("a document and a real model", { timeout: SLOW_MS }, () => {
  let app: TestApp;
  let llama: LlamaServer;
  beforeAll(async () => {
    app = await openTestApp();
    llama = await startLlama(INSTALLED!);
    await app.put("/api/connections", { id: "llama", name: "llama.cpp", kind: "openai", base_url: `${llama.url}/v1` });
    await app.post("/api/connections/llama/activate", {});
  }, SLOW_MS);
  afterAll(async () => {
    await llama?.[Symbol.asyncDispose]();
    await app?.[Symbol.asyncDispose]();
  });

  test("answers a question about 300 pages from the right page, within the model's context", async () => {
    const { pages, questions } = writeBook(300, 3);
    const document = await addDocument(app, "book.pdf", writePdf(pages));
    expect(document).toMatchObject({ state: "ready", pages: 300 });
    for (const [n, { question, page }] of questions.entries()) {
      const body = {
        conversation_id: `c${n}`,
        user_message_id: `u${n}`,
        assistant_message_id: `a${n}`,
        context: "server",
        messages: [{ role: "user", content: question, documents: [{ id: document.id }] }],
      };
      const preview = await (await app.post("/api/chat/preview", body)).json();
      expect(preview).toMatchObject({ fits: true, counted_by: "server", context_size: 2048 });
      expect(preview.messages[0].content).toContain(`[p. ${page}]`);
      expect(preview.messages[0].content).toMatch(/was\s+auctioned\s+to/);
      const reply = await app.post("/api/chat", {
        ...body,
        stream: false,
        max_tokens: 24,
        ignore_eos: true,
        stop: ["<never written>"],
      });
      expect(reply.status).toBe(200);
      const [content] = (await reply.json()).choices.map((choice: { message: { content: string } }) =>
        choice.message.content
      );
      expect(content.length).toBeGreaterThan(0);
      const { messages } = await (await app.get(`/api/conversations/c${n}`)).json();
      const stored = messages.find((message: { id: string }) => message.id === `a${n}`);
      expect(stored.documents[0].sent.pages.split(/[,-]/).map(Number)).toContain(page);
      expect(stored.usage.prompt_tokens).toBeLessThan(2048);
    }
  });
});
