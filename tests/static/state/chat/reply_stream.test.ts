/** How a stream begins and shows calls of tools; tests/static/views/chat has the rest in a browser. */
import { afterEach, expect, test, vi } from "vitest";
import type { ToolCall } from "../../../../static/src/api/tools.ts";
import { ReplyStream } from "../../../../static/src/state/chat/reply_stream.ts";

function openStream(present: { text?: string; reasoning?: string } = {}): ReplyStream {
  const attach = () => Promise.reject(new Error("not followed"));
  return new ReplyStream({ messageId: "a1", startedAtMs: 0, text: "", reasoning: "", ...present, attach });
}

const call = (changes: Partial<ToolCall>): ToolCall => ({ id: "c1", name: "search", arguments: "{}", ...changes });

test("keeps the result of a call when the response to its approval arrives later", () => {
  const stream = openStream();
  stream.showCall(call({ state: "pending" }));
  stream.showCall(call({ state: "done", result: "found" }));
  stream.showCall(call({ state: "running" }));
  expect(stream.calls.value.map(({ call }) => call)).toEqual([call({ state: "done", result: "found" })]);
});

test("shows a call that waits again with another description", () => {
  const stream = openStream();
  stream.showCall(call({ state: "pending", hints: { readOnly: true } }));
  stream.showCall(call({ state: "pending", hints: { destructive: true } }));
  expect(stream.calls.value.map(({ call }) => call.hints)).toEqual([{ destructive: true }]);
});

test("a running reply that has text already is never shown as waiting, also before its stream is there", () => {
  expect(openStream({ text: "Once" }).phase.value).toBe("writing");
  expect(openStream({ reasoning: "They want a story." }).phase.value).toBe("writing");
  expect(openStream().phase.value).toBe("waiting");
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A reply whose streams never end by themselves, in a page that can be hidden. */
function followHidden(needs: { hasNext?: () => boolean; isHeard?: () => boolean }) {
  vi.useFakeTimers();
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  vi.stubGlobal("document", page);
  const attached: { from: string | undefined; signal: AbortSignal }[] = [];
  const stream = new ReplyStream({
    messageId: "a1",
    startedAtMs: 0,
    text: "Once",
    reasoning: "",
    hasNext: needs.hasNext,
    attach: (from, signal) => {
      attached.push({ from, signal });
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => signal.addEventListener("abort", () => controller.error(signal.reason)),
      });
      return Promise.resolve(new Response(body));
    },
  });
  if (needs.isHeard) stream.isHeard = needs.isHeard;
  const ended = stream.follow();
  const show = async (visibilityState: string) => {
    page.visibilityState = visibilityState;
    page.dispatchEvent(new Event("visibilitychange"));
    await vi.advanceTimersByTimeAsync(20_000);
  };
  return { stream, attached, ended, show };
}

test("lets go of its connection while nobody sees the page, and opens another at once when it's seen", async () => {
  const { stream, attached, ended, show } = followHidden({});
  await show("visible");
  expect(attached).toHaveLength(1);
  await show("hidden");
  expect(attached.map(({ signal }) => signal.aborted)).toEqual([true]);
  expect(stream.phase.value).toBe("writing");
  await show("visible");
  expect(attached.map(({ signal }) => signal.aborted)).toEqual([true, false]);
  expect(stream.phase.value).toBe("writing");
  stream.leave();
  expect(await ended).toEqual({ kind: "left" });
});

test.each([
  ["another character speaks after it", { hasNext: () => true }],
  ["it's read aloud", { isHeard: () => true }],
])("keeps its connection while nobody sees the page if %s", async (_, needs) => {
  const { stream, attached, ended, show } = followHidden(needs);
  await show("hidden");
  expect(attached.map(({ signal }) => signal.aborted)).toEqual([false]);
  stream.leave();
  expect(await ended).toEqual({ kind: "left" });
});
