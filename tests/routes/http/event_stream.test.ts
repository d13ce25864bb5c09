import { expect, test } from "vitest";
import { createEventStream } from "../../../routes/http/event_stream.ts";

const encode = (text: string) => new TextEncoder().encode(text);

test("comments keep a silent stream alive", async () => {
  const { promise, resolve } = Promise.withResolvers<Uint8Array | undefined>();
  const stream = createEventStream({ next: () => promise }, 5);
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  for (let i = 0; i < 3; i++) expect(decoder.decode((await reader.read()).value)).toBe(": keep-alive\n\n");
  resolve(undefined);
  while (!(await reader.read()).done);
});

test("a source is read only when the client reads, and is closed once when the client disconnects", async () => {
  let [asked, closed] = [0, 0];
  const stream = createEventStream({ next: () => encode(`data: ${++asked}\n\n`), close: () => closed++ });
  expect(asked).toBe(0);
  const reader = stream.getReader();
  await reader.read();
  await reader.read();
  expect(asked).toBe(2);
  await reader.cancel();
  expect(closed).toBe(1);
});

test("a source that ends closes the stream, one that throws breaks it, and both are released", async () => {
  let closed = 0;
  const rest = [encode("a"), undefined];
  expect(await new Response(createEventStream({ next: () => rest.shift(), close: () => closed++ })).text()).toBe("a");
  const broken = createEventStream({
    next: () => {
      throw new Error("broken");
    },
    close: () => closed++,
  });
  await expect(new Response(broken).text()).rejects.toThrow("broken");
  expect(closed).toBe(2);
});
