import { expect, test } from "vitest";
import { endingBody } from "../../middleware/ending_body.ts";

const encoder = new TextEncoder();

/** A body to which text is added by hand, and what became of it. */
function openBody() {
  const ending = new AbortController();
  const seen = { released: 0, cancelled: 0 };
  let source!: ReadableStreamDefaultController<Uint8Array>;
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => void (source = controller),
    cancel() {
      seen.cancelled++;
      return new Promise(() => {}); // A source that takes for ever to let go.
    },
  });
  const reader = endingBody(stream, { signal: ending.signal, release: () => seen.released++ }).getReader();
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  return { ending, seen, reader, read, add: (text: string) => source.enqueue(encoder.encode(text)), source };
}

test("a body passes as it comes and ends as its source does", async () => {
  const { reader, read, add, source, seen } = openBody();
  add("one");
  expect(await read()).toBe("one");
  const waiting = read();
  add("two");
  expect(await waiting).toBe("two");
  source.close();
  expect((await reader.read()).done).toBe(true);
  expect(seen).toEqual({ released: 1, cancelled: 0 });
});

test("a right that is revoked ends the body in the middle of a wait, and gives nothing out that lay ready", async () => {
  const waits = openBody();
  waits.add("one");
  expect(await waits.read()).toBe("one");
  const waiting = waits.reader.read();
  waits.ending.abort();
  expect((await waiting).done).toBe(true);
  expect(waits.seen).toEqual({ released: 1, cancelled: 1 });

  const ready = openBody();
  ready.add("one");
  ready.ending.abort();
  expect((await ready.reader.read()).done).toBe(true);
  expect(ready.seen).toEqual({ released: 1, cancelled: 1 });
});

test("a client that leaves, and a source that fails, release it once", async () => {
  const left = openBody();
  left.reader.cancel();
  left.ending.abort();
  expect(left.seen).toEqual({ released: 1, cancelled: 1 });

  const failed = openBody();
  const waiting = failed.reader.read();
  failed.source.error(new Error("cut"));
  await expect(waiting).rejects.toThrow("cut");
  failed.ending.abort();
  expect(failed.seen).toEqual({ released: 1, cancelled: 0 });
});
