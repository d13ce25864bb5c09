/**
 * A relay that reads every event and writes its own, and keeps nothing: `deno run -A parsing_relay.ts UPSTREAM_URL`. One
 * re-used read buffer, the parser's callback form and one write a read are the cheapest ways known.
 */
import { createParser } from "eventsource-parser";

const READ_BYTES = 64 * 1024;
const encoder = new TextEncoder();

/** Converts the events of a body into its own frames. */
function relay(body: ReadableStream<Uint8Array>, signal: AbortSignal): ReadableStream<Uint8Array> {
  const reader = body.getReader({ mode: "byob" });
  const decoder = new TextDecoder();
  const before =
    `data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1767225600,"model":"bench","choices":`;
  let buffer = new ArrayBuffer(READ_BYTES);
  let frames = "";
  const parser = createParser({
    onEvent({ data }) {
      if (data === "[DONE]") {
        frames += "data: [DONE]\n\n";
        return;
      }
      const choice = JSON.parse(data).choices[0];
      const text: unknown = choice?.delta?.content;
      if (typeof text !== "string") return;
      frames += `${before}[{"index":0,"delta":{"content":${JSON.stringify(text)}},"finish_reason":null}]}\n\n`;
    },
  });
  signal.addEventListener("abort", () => reader.cancel().catch(() => {}));
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      while (frames === "") {
        const { done, value } = await reader.read(new Uint8Array(buffer));
        if (done) return controller.close();
        buffer = value.buffer;
        parser.feed(decoder.decode(value, { stream: true }));
      }
      controller.enqueue(encoder.encode(frames));
      frames = "";
    },
  }, { highWaterMark: 0 });
}

if (import.meta.main) {
  const upstream = Deno.args[0]!;
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, async (request) => {
    const { model, messages, stream } = await request.json();
    const answer = await fetch(upstream, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ model, messages, stream }),
    });
    return new Response(relay(answer.body!, request.signal), { headers: { "Content-Type": "text/event-stream" } });
  });
}
