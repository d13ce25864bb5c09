import { expect, test } from "vitest";
import type { StatefulChatRequest } from "../../../services/chat/chat_service.ts";
import { Reply } from "../../../services/chat/reply.ts";
import { type ReplyCursor, StoredReply } from "../../../services/chat/replies.ts";
import type { JournalBatch, ReplyJournal } from "../../../services/chat/journal/journal.ts";
import { completeMessage, type Message } from "../../../services/conversations/message.ts";
import { AppError } from "../../../services/errors.ts";
import type { ChatEvent } from "../../../services/llm/chat_event.ts";

const START: ReplyCursor = { seq: 0, textLength: 0, reasoningLength: 0 };

/** Written where the real one is: after everything else in the same tick. */
function journalThat(write: (batch: JournalBatch) => void): ReplyJournal {
  return {
    prepare: () => {},
    append: (batch) => Promise.resolve(batch).then(write),
    settle: () => Promise.resolve(),
  };
}

function openReply(base = { text: "", reasoning: "" }) {
  const journalled: JournalBatch[] = [];
  const journal = journalThat((batch) => journalled.push(batch));
  const reply = new Reply({
    conversationId: "c1",
    messageId: "a1",
    generation: "g",
    model: "m",
    startedAtMs: 0,
    base,
    journal,
  });
  return { reply, journalled };
}

async function* sending(...batches: (ChatEvent[] | Error)[]): AsyncGenerator<ChatEvent[]> {
  for (const batch of batches) {
    if (batch instanceof Error) throw batch;
    yield batch;
    await Promise.resolve();
  }
}

const text = (value: string): ChatEvent => ({ type: "text", text: value });
const reasoning = (value: string): ChatEvent => ({ type: "reasoning", text: value });

/** Stores nothing. */
const NO_MEDIA = { storeImages: () => Promise.resolve([]), storeSound: () => Promise.resolve(undefined) };

/** Collects the events and ends as the chat service does. */
async function run(reply: Reply, batches: AsyncIterable<ChatEvent[]>): Promise<void> {
  await reply.collect(batches, { media: NO_MEDIA });
  reply.markSettled();
}

async function follow(source: Pick<Reply, "next">, from: ReplyCursor) {
  const all = { text: "", reasoning: "", places: [from], steps: 0, notices: [] as string[] };
  for (let place = from;;) {
    const step = await source.next(place);
    if ("end" in step) return { ...all, end: step.end };
    if ("suspended" in step) return { ...all, end: step.suspended };
    if ("notice" in step) {
      all.notices.push(step.notice.message);
      place = step.after;
      continue;
    }
    if ("calls" in step || "progress" in step) {
      place = step.after;
      continue;
    }
    all.steps++;
    for (const event of step.batch) {
      all[event.type] += event.delta;
      all.places.push(event);
    }
    place = { ...step.batch.at(-1)!, calls: place.calls };
  }
}

test("reports the state of the model server once to each client, until the model answers", async () => {
  const { reply } = openReply();
  const early = follow(reply, START);
  reply.notify({ code: "model_reload", message: "first", contextSize: 8_192 });
  const late = follow(reply, START);
  await Promise.resolve();
  reply.notify({ code: "model_reload", message: "second", contextSize: 16_384 });
  await run(reply, sending([text("Hello")]));
  expect((await early).notices).toEqual(["first", "second"]);
  expect((await late).notices).toEqual(["first", "second"]);
  expect(await follow(reply, START)).toMatchObject({ notices: [], text: "Hello", end: { status: "complete" } });
});

test("resumes a reply from any cursor, running or stored", async () => {
  const { reply, journalled } = openReply();
  const batches = [[reasoning("Hm, "), reasoning("so.")], [text("Hel"), text("lo ")], [text("😀"), text(" you")], [
    reasoning(" More?"),
    text("!"),
  ]];
  const following = follow(reply, START);
  await run(reply, sending(...batches, [{ type: "finish", reason: "stop" }]));
  const whole = await following;
  expect(whole).toMatchObject({
    text: "Hello 😀 you!",
    reasoning: "Hm, so. More?",
    end: { status: "complete", finishReason: "stop" },
  });
  expect(journalled.map((batch) => batch.text).join("")).toBe("Hello 😀 you!");

  const message = reply.withLiveText({
    ...completeMessage({ role: "assistant" }, "a1", "2026-01-01T00:00:00.000Z"),
    status: "streaming",
  });
  const stored = new StoredReply("c1", "g", 0, JSON.parse(JSON.stringify(message)));
  for (const place of whole.places) {
    for (const source of [reply, stored]) {
      const rest = await follow(source, place);
      expect(whole.text.slice(0, place.textLength) + rest.text).toBe(whole.text);
      expect(whole.reasoning.slice(0, place.reasoningLength) + rest.reasoning).toBe(whole.reasoning);
      expect(rest.end).toMatchObject({ status: "complete", finishReason: "stop" });
    }
  }
});

test("journals a batch before any client gets it", async () => {
  const { reply, journalled } = openReply();
  const seen = Promise.resolve(reply.next(START)).then(() => journalled.length);
  await run(reply, sending([text("a")]));
  expect(await seen).toBe(1);
});

test("hides a batch from new clients and readers until it is journaled", async () => {
  const written = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const journal: ReplyJournal = {
    ...journalThat(() => {}),
    append: () => {
      asked.resolve();
      return written.promise;
    },
  };
  const { reply } = openReply();
  const slow = new Reply({ ...reply, base: { text: "", reasoning: "" }, journal });
  const running = run(slow, sending([reasoning("r"), text("a")]));
  await asked.promise;
  const step = slow.next(START);
  expect(step).toBeInstanceOf(Promise);
  expect(slow.withLiveText(completeMessage({ role: "assistant" }, "a1", "2026-01-01T00:00:00.000Z"))).toMatchObject({
    content: "",
  });
  written.resolve();
  expect(await step).toMatchObject({ batch: [{ delta: "r" }, { delta: "a" }] });
  await running;
});

test("shares one batch object among clients at the same position", async () => {
  const { reply } = openReply();
  const steps = Promise.all([reply.next(START), reply.next(START)]);
  await run(reply, sending([text("a"), text("b")]));
  const [one, two] = await steps;
  expect(one).toEqual(two);
  expect((one as { batch: unknown }).batch).toBe((two as { batch: unknown }).batch);
});

test("sends a client that lags the rest in few steps", async () => {
  const { reply } = openReply();
  const chunk = "x".repeat(1000);
  await run(reply, sending(...Array.from({ length: 2000 }, () => [text(chunk)])));
  const all = await follow(reply, START);
  expect(all.text.length).toBe(2_000_000);
  expect(all.steps).toBeLessThan(10);
});

test("sends nothing twice for a cursor beyond the end, as after a power cut", async () => {
  const { reply } = openReply();
  await run(reply, sending([text("abc")]));
  expect(await follow(reply, { seq: 9, textLength: 9, reasoningLength: 0 })).toMatchObject({ text: "", steps: 0 });
});

test("counts cursors from the beginning of a continued message", async () => {
  const { reply } = openReply({ text: "Once ", reasoning: "" });
  await run(reply, sending([text("more")]));
  expect((await follow(reply, START)).text).toBe("Once more");
  expect((await follow(reply, { seq: 0, textLength: 5, reasoningLength: 0 })).text).toBe("more");
});

test.each([
  ["an upstream error", new AppError("upstream_timeout", "Too slow"), {
    status: "failed",
    error: { code: "upstream_timeout", message: "Too slow" },
  }],
  ["a defect", new TypeError("secret detail"), { status: "failed", error: { code: "internal" } }],
])("keeps the text after %s and reports the error", async (_, error, end) => {
  const { reply } = openReply();
  await run(reply, sending([text("par"), text("tial")], error));
  const all = await follow(reply, START);
  expect(all.text).toBe("partial");
  expect(all.end).toMatchObject(end);
  expect(JSON.stringify(all.end)).not.toContain("secret");
});

test("fails an empty reply", async () => {
  const { reply } = openReply();
  await run(reply, sending([{ type: "finish", reason: "stop" }]));
  expect(reply.end).toMatchObject({ status: "failed", error: { message: "The model returned an empty reply" } });
});

test.each(["stopped", "interrupted"] as const)(
  "keeps the text of a reply that is %s and aborts the call",
  async (why) => {
    const { reply } = openReply();
    async function* endless(): AsyncGenerator<ChatEvent[]> {
      yield [text("a")];
      await new Promise((_, reject) => reply.signal.addEventListener("abort", () => reject(reply.signal.reason)));
    }
    const gathering = run(reply, endless());
    await reply.next(START);
    reply.abort(why);
    await gathering;
    expect(reply.end?.status).toBe(why);
    expect((await follow(reply, START)).text).toBe("a");
  },
);

test("fails the reply if the journal can't be written, before clients see the text", async () => {
  const { reply } = openReply();
  const journal = journalThat(() => {
    throw new AppError("storage_full", "The disk is full");
  });
  const failing = new Reply({ ...reply, base: { text: "", reasoning: "" }, journal });
  await run(failing, sending([text("a")]));
  expect(failing.end).toMatchObject({ status: "failed", error: { code: "storage_full" } });
  expect(failing.signal.aborted).toBe(true);
  expect((await follow(failing, START)).text).toBe("");
});

test("merges tool calls and sends them at the end", async () => {
  const { reply } = openReply();
  const piece = (fragment: object): ChatEvent => ({ type: "tool_calls", delta: [fragment] });
  await run(
    reply,
    sending(
      [piece({ index: 0, id: "t1", function: { name: "look", arguments: '{"a"' } })],
      [
        piece({ index: 0, function: { name: "", arguments: ":1}" } }),
        piece({ index: 1, id: "t2", function: { name: "go", arguments: "{}" } }),
      ],
      [{ type: "finish", reason: "tool_calls" }],
    ),
  );
  expect(reply.end).toMatchObject({
    status: "complete",
    toolCalls: [{ id: "t1", function: { name: "look", arguments: '{"a":1}' } }, { id: "t2", function: { name: "go" } }],
  });
});

test("follows a stored message of an earlier process", async () => {
  const message: Message = {
    ...completeMessage({ role: "assistant", content: "abc" }, "a1", "2026-01-01T00:00:00.000Z"),
    status: "interrupted",
  };
  const rest = await follow(new StoredReply("c1", "g", 0, message), { seq: 1, textLength: 1, reasoningLength: 0 });
  expect(rest).toMatchObject({ text: "bc", end: { status: "interrupted", error: { code: "interrupted" } } });
});

test("shows the end to clients only after it is saved", async () => {
  const { reply } = openReply();
  await reply.collect(sending([text("a")]), { media: NO_MEDIA });
  let hasEnded = false;
  const following = follow(reply, START).then(() => hasEnded = true);
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  expect(hasEnded).toBe(false);
  reply.markSettled();
  await following;
});

test("goes on after a restart only while the model writes, not once it has ended or was stopped", async () => {
  const request = { conversationId: "c1" } as StatefulChatRequest;
  const stream = { id: "s", connectionId: "d", model: "m" };
  const [{ reply: ended }, { reply: stopped }] = [openReply(), openReply()];
  for (const reply of [ended, stopped]) {
    await reply.savePlan({ request, stream });
    expect(reply.canGoOn).toBe(true);
  }
  stopped.abort("stopped");
  expect(stopped.canGoOn).toBe(false);
  await ended.collect(sending([text("Hello")]), { media: NO_MEDIA });
  expect(ended.end).toMatchObject({ status: "complete" });
  expect(ended.canGoOn).toBe(false);
});
