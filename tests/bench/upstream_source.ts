/**
 * The model server behind everything that is measured: OpenAI's protocol, bytes made beforehand, so that it is never the
 * slow part. `deno run -A upstream_source.ts` prints where it listens.
 */
import { type Answer, type AnswerBytes, answerOf, bytesOf, stampedToken } from "./upstream_chunks.ts";

/** Bytes per write in a flood. */
const FLOOD_WRITE_BYTES = 64 * 1024;
const HEADERS = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" };

/** Serves until the process ends. */
function serveUpstream(): void {
  const made = new Map<string, AnswerBytes>();
  const bytesFor = (answer: Answer) => {
    const key = `${answer.tag}-${answer.count}`;
    let bytes = made.get(key);
    if (bytes === undefined) made.set(key, bytes = bytesOf(answer));
    return bytes;
  };
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/v1/models") return Response.json({ object: "list", data: [{ id: "flood-1-a" }] });
    if (pathname !== "/v1/chat/completions") return new Response("Not found", { status: 404 });
    const { model } = await request.json();
    const answer = answerOf(model);
    if (answer === undefined) return Response.json({ error: { message: `no such model: ${model}` } }, { status: 404 });
    const bytes = bytesFor(answer);
    return new Response(answer.mode === "flood" ? flood(bytes) : paced(bytes, answer), { headers: HEADERS });
  });
}

function flood({ bytes, last }: AnswerBytes): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at < bytes.length) {
        controller.enqueue(bytes.subarray(at, at += FLOOD_WRITE_BYTES));
        return;
      }
      controller.enqueue(last);
      controller.close();
    },
  });
}

function paced(
  { bytes, ends, last }: AnswerBytes,
  { mode, perSecond, tag }: Exclude<Answer, { mode: "flood" }>,
): ReadableStream<Uint8Array> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isLeft = false;
  const periodMs = 1000 / perSecond;
  // Streams that start together must not send in sync.
  const beganAtMs = performance.now() - Math.random() * periodMs;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      let sent = 0;
      const send = () => {
        // Writing after the reader has disconnected would end the process.
        if (isLeft) return;
        if (sent === ends.length) {
          controller.enqueue(last);
          controller.close();
          return;
        }
        controller.enqueue(
          mode === "stamped"
            ? stampedToken(tag, sent, performance.now())
            : bytes.subarray(ends[sent - 1] ?? 0, ends[sent]),
        );
        sent++;
        // By the clock, so that late timers don't slow the stream down.
        timer = setTimeout(send, beganAtMs + sent * periodMs - performance.now());
      };
      send();
    },
    cancel() {
      isLeft = true;
      clearTimeout(timer);
    },
  });
}

if (import.meta.main) serveUpstream();
