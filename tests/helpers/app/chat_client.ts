/** Reads chat streams like a client. */
import { createParser } from "eventsource-parser";
import type { FakeLlm, ManualAnswer } from "../fakes/llm/fake_llm.ts";
import { PATIENCE_MS } from "./patience.ts";
import type { TestApp } from "./test_app.ts";

/** One event of a stream. */
export interface Frame {
  id?: string;
  event?: string;
  data: string;
}

/** The content of a stream. */
export interface Gathered {
  frames: Frame[];
  text: string;
  reasoning: string;
  finish: string | null;
  usage?: Record<string, unknown>;
  isDone: boolean;
  /** The server's status events before the response. */
  notices: Record<string, unknown>[];
  /** The stored message, if it differs from the streamed one. */
  message?: Record<string, unknown>;
  error?: { code: string; message: string; request_id: string };
}

/** Yields the frames of a stream as they arrive. Leaving the loop early disconnects. */
export async function* framesOf(response: Response): AsyncGenerator<Frame> {
  const pending: Frame[] = [];
  const parser = createParser({ onEvent: ({ id, event, data }) => pending.push({ id, event, data }) });
  const decoder = new TextDecoder();
  for await (const bytes of response.body!) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    yield* pending.splice(0);
  }
}

/** Reads a stream to its end, or only its first `count` frames. */
export async function gather(response: Response, count = Infinity): Promise<Gathered> {
  const frames: Frame[] = [];
  if (count > 0) {
    for await (const frame of framesOf(response)) {
      frames.push(frame);
      if (frames.length >= count) break;
    }
  }
  return understand(frames);
}

/** Joins the frames of a stream. */
export function understand(frames: Frame[]): Gathered {
  const all: Gathered = { frames, text: "", reasoning: "", finish: null, isDone: false, notices: [] };
  for (const { event, data } of frames) {
    if (event === "error") all.error = JSON.parse(data).error;
    else if (data === "[DONE]") all.isDone = true;
    else if (event === "notice") all.notices.push(JSON.parse(data));
    else if (event === "message") all.message = JSON.parse(data);
    else if (event !== undefined) continue;
    else {
      const { choices, usage } = JSON.parse(data);
      all.text += choices[0]?.delta.content ?? "";
      all.reasoning += choices[0]?.delta.reasoning_content ?? "";
      all.finish = choices[0]?.finish_reason ?? all.finish;
      all.usage = usage ?? all.usage;
    }
  }
  return all;
}

/** Adds a model server as the active connection. */
export async function useModel(
  app: TestApp,
  llm: { url: string },
  fields: Record<string, unknown> = {},
): Promise<void> {
  const connection = {
    id: "double",
    name: "Double",
    kind: "openai",
    base_url: llm.url,
    model: "fake-model",
    ...fields,
  };
  const saved = await app.put("/api/connections", connection);
  if (!saved.ok) throw new Error(`The connection was refused: ${await saved.text()}`);
  await (await app.post(`/api/connections/${connection.id}/activate`)).body?.cancel();
  await saved.body?.cancel();
}

/** Sends a message in a conversation: user message `u<n>`, reply `a<n>`. */
export function ask(
  app: TestApp,
  n: number,
  fields: Record<string, unknown> = {},
  init?: RequestInit,
): Promise<Response> {
  const messages = [{ role: "user", content: `question ${n}` }];
  const ids = { conversation_id: "c1", user_message_id: `u${n}`, assistant_message_id: `a${n}` };
  return app.post("/api/chat", { ...ids, messages, ...fields }, init);
}

/** Like `ask`, but the model writes only this part of its reply, which is read at the same time. */
export async function beginReply(
  app: TestApp,
  llm: FakeLlm,
  text: string,
): Promise<{ call: ManualAnswer; reply: Promise<Gathered> }> {
  await useModel(app, llm);
  llm.switches.manual = "on";
  const asked = ask(app, 1);
  const call = await llm.nextCall();
  await call.emit(text);
  const reply = gather(await asked);
  await until(async () => (await savedMessage(app, "a1"))?.content === text, "the reply has begun");
  return { call, reply };
}

/** Fetches a stored message. */
export async function savedMessage(app: TestApp, mid: string, id = "c1"): Promise<Record<string, unknown> | undefined> {
  const conversation = await (await app.get(`/api/conversations/${id}`)).json();
  return conversation.messages.find((message: { id: string }) => message.id === mid);
}

/** Waits until a condition holds. @param limitMs A higher limit for real programs. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  withinMs = PATIENCE_MS,
): Promise<void> {
  for (const limit = Date.now() + withinMs; !(await condition());) {
    if (Date.now() > limit) throw new Error(`Waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
