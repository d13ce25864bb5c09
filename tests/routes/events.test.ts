import { expect, test } from "vitest";
import { eventRoutes } from "../../routes/events.ts";
import { createEventHub } from "../../services/events/event_hub.ts";
import { openTestApp } from "../helpers/app/test_app.ts";

/** Reads frames as they arrive. */
function frameReader(answer: Response) {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    /** Returns the next frame, `undefined` at the end. */
    async next(): Promise<string | undefined> {
      for (;;) {
        const end = text.indexOf("\n\n");
        if (end >= 0) {
          const frame = text.slice(0, end);
          text = text.slice(end + 2);
          return frame;
        }
        const { done, value } = await reader.read();
        if (done) return undefined;
        text += value;
      }
    },
    cancel: () => reader.cancel(),
  };
}

test("changes are streamed as they happen, with names only and the headers of a stream", async () => {
  await using app = await openTestApp();
  const answer = await app.get("/api/events");
  expect(answer.headers.get("content-type")).toBe("text/event-stream");
  expect(answer.headers.get("cache-control")).toBe("no-store, no-transform");
  expect(answer.headers.get("x-accel-buffering")).toBe("no");
  const frames = frameReader(answer);
  expect(await frames.next()).toBe(": open");
  app.services.events.publish({ kind: "conversation", id: "c1", revision: 3 });
  app.services.events.publish({ kind: "job", id: "j1" });
  expect(await frames.next()).toBe('data: {"kind":"conversation","id":"c1","revision":3}');
  expect(await frames.next()).toBe('data: {"kind":"job","id":"j1"}');
  await frames.cancel();
});

test("a change between the response's headers and its first frame isn't lost", async () => {
  await using app = await openTestApp();
  const answer = await app.get("/api/events");
  app.services.events.publish({ kind: "draft", id: "c1" });
  const frames = frameReader(answer);
  expect([await frames.next(), await frames.next()]).toEqual([": open", 'data: {"kind":"draft","id":"c1"}']);
  await frames.cancel();
});

/** The route alone, so that its subscriptions can be counted. */
function openRoute(keepAliveMs?: number) {
  const hub = createEventHub(() => {});
  let subscriptions = 0;
  const counting: typeof hub = {
    publish: hub.publish,
    subscribe(listener) {
      subscriptions++;
      const end = hub.subscribe(listener);
      return () => {
        subscriptions--;
        end();
      };
    },
  };
  const closing = new AbortController();
  const connection = { peerAddress: "127.0.0.1", listener: "main", closing: closing.signal } as const;
  const router = eventRoutes({ events: counting }, { keepAliveMs });
  return {
    hub,
    closing,
    ask: async (method = "GET") => await router.request("/api/events", { method }, connection),
    get subscriptions() {
      return subscriptions;
    },
  };
}

test("a client that disconnects leaves nothing behind", async () => {
  const route = openRoute();
  const frames = [frameReader(await route.ask()), frameReader(await route.ask())];
  expect(route.subscriptions).toBe(2);
  for (const reader of frames) {
    await reader.next();
    await reader.cancel();
  }
  expect(route.subscriptions).toBe(0);
});

test(
  "streams say that they go on after a restart when the listener closes, and no new ones start",
  { tags: ["L06"] },
  async () => {
    const route = openRoute();
    const frames = frameReader(await route.ask());
    await frames.next();
    route.closing.abort();
    expect(await frames.next()).toBe('event: restarting\ndata: {"retry_ms":1000}');
    expect(await frames.next()).toBeUndefined();
    expect(await frameReader(await route.ask()).next()).toBe(": open");
    expect(route.subscriptions).toBe(0);
  },
);

test("a client that doesn't read has a bounded queue and is then disconnected", async () => {
  const route = openRoute();
  const frames = frameReader(await route.ask());
  for (let i = 0; i < 500; i++) route.hub.publish({ kind: "draft", id: "same", revision: i });
  expect(route.subscriptions).toBe(1);
  for (let i = 0; i < 1_001; i++) route.hub.publish({ kind: "draft", id: `c${i}` });
  expect(route.subscriptions).toBe(0);
  expect([await frames.next(), await frames.next()]).toEqual([": open", undefined]);
});

test("two changes of the same item while a client was away are sent as one", async () => {
  const route = openRoute();
  const frames = frameReader(await route.ask());
  await frames.next();
  for (let revision = 1; revision <= 3; revision++) route.hub.publish({ kind: "conversation", id: "c1", revision });
  route.hub.publish({ kind: "end", id: "e" });
  const seen = [];
  for (let frame = await frames.next(); !frame!.includes('"end"'); frame = await frames.next()) seen.push(frame);
  expect(seen.at(-1)).toBe('data: {"kind":"conversation","id":"c1","revision":3}');
  await frames.cancel();
});

test("a silent stream is kept alive by comments", async () => {
  const route = openRoute(5);
  const frames = frameReader(await route.ask());
  expect([await frames.next(), await frames.next(), await frames.next()]).toEqual([
    ": open",
    ": keep-alive",
    ": keep-alive",
  ]);
  await frames.cancel();
  expect(route.subscriptions).toBe(0);
});
