import { expect, test } from "vitest";
import { ask, gather, savedMessage, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const IMAGE = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
const SOURCE = { url: "https://example.com/wet", title: "Wet" };

/** A server that returns a picture and a source with each reply. */
function openServer() {
  const requests: Record<string, unknown>[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    if (request.method === "GET") return Response.json({ data: [{ id: "m" }] });
    requests.push(await request.json());
    const delta = { content: "", images: [IMAGE], annotations: [{ type: "url_citation", url_citation: SOURCE }] };
    const chunks = [{ choices: [{ index: 0, delta }] }, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }];
    const body = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + "data: [DONE]\n\n";
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  });
  return {
    requests,
    url: `http://127.0.0.1:${server.addr.port}/v1`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

test("stores the pictures and sources of a reply, sends them to clients, and sends the pictures back", async () => {
  await using server = openServer();
  await using app = await openTestApp();
  await useModel(app, server);
  const answer = await gather(await ask(app, 1, { context: "server", model: "m" }));
  const stored = (await savedMessage(app, "a1"))!;
  const url = expect.stringMatching(/^\/api\/attachments\/[0-9a-f]{40}\.png$/);
  expect(stored).toMatchObject({
    status: "complete",
    content: [{ type: "image_url", image_url: { url }, origin: "model" }],
    sources: [{ n: 1, ...SOURCE }],
  });
  expect(answer.message).toEqual(stored);
  const [{ image_url: image }] = stored.content as { image_url: { url: string } }[] as [{ image_url: { url: string } }];
  expect((await app.get(image.url)).headers.get("content-type")).toBe("image/png");
  await gather(await ask(app, 2, { context: "server", model: "m" }));
  const sent = JSON.stringify(server.requests.at(-1)!.messages);
  expect(sent).toContain('"url":"data:image/jpeg;base64,');
  expect(sent).not.toContain("origin");
});
