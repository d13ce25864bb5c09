/** One character being written by a model, step by step. */
import type { ModelRouter } from "../../llm/model_router.ts";
import { stripReasoning } from "../../llm/reasoning.ts";
import { AppError } from "../../errors.ts";
import type { ChatEvent } from "../../llm/chat_event.ts";
import type { ChatStream } from "../../llm/upstream_client.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import { type CharacterFields, readCharacterFields } from "./character_fields.ts";
import { characterCall, type CharacterIdea } from "./character_prompt.ts";

/** How a field changes: text is added to what is there, or something takes its place. */
export type WritingStep = { field: string; append: string } | { field: string; value: string | string[] };

/** A model's answer while it comes. */
export interface Writing {
  model: string;
  /**
   * Gives what is new with each piece of the answer, nothing while the model thinks.
   *
   * @returns Whether the model ran out of room before it was done.
   * @throws {AppError} `unprocessable` when the answer holds no character; what a chat throws in the middle of a reply
   */
  steps(): AsyncGenerator<WritingStep[], { isCut: boolean }>;
  /** Ends the call upstream. */
  cancel(): void;
}

/** Longer than any card; a model that runs in circles is ended here. In characters. */
const MAX_ANSWER = 120_000;
/** How much of an answer that is no character is shown. */
const MAX_QUOTE = 400;

/**
 * Asks the active connection.
 *
 * @throws {AppError} `not_available` without a connection or with the demo alone; what a chat throws before its first byte
 */
export async function openWriting(
  models: ModelRouter,
  idea: CharacterIdea,
  signal: AbortSignal,
): Promise<Writing> {
  const { target, model } = await models.route({}, signal);
  if (target.kind === "demo") {
    throw new AppError("not_available", "The demo cannot write characters; choose a model under Settings, Connections");
  }
  const open = (isHeld: boolean) =>
    models.client.openChatStream(target, characterCall(target, model, idea, isHeld), signal);
  let stream: ChatStream;
  try {
    stream = await open(target.kind === "openai");
  } catch (error) {
    if (target.kind !== "openai" || !mayBeTheForm(error)) throw error;
    stream = await open(false);
  }
  return { model, steps: () => stepsOf(stream, model), cancel: () => stream.cancel() };
}

/** Servers that know no `response_format`, or not this one, refuse the whole call, each in its own words. */
function mayBeTheForm(error: unknown): boolean {
  if (!(error instanceof UpstreamError) || error.kind !== "failed") return false;
  return error.status !== undefined && error.status >= 400;
}

async function* stepsOf(stream: ChatStream, model: string): AsyncGenerator<WritingStep[], { isCut: boolean }> {
  let answer = "";
  let isCut = false;
  let known: CharacterFields = {};
  try {
    for await (const batch of stream.batches()) {
      const text = textIn(batch);
      isCut ||= batch.some((event) => event.type === "finish" && event.reason === "length");
      if (text === "") {
        yield [];
        continue;
      }
      answer += text;
      const now = readCharacterFields(answer);
      yield changesBetween(known, now);
      known = now;
      if (answer.length > MAX_ANSWER) {
        isCut = true;
        break;
      }
    }
  } finally {
    stream.cancel();
  }
  if (Object.keys(known).length === 0) throw noCharacter(model, answer);
  return { isCut };
}

function textIn(batch: readonly ChatEvent[]): string {
  return batch.map((event) => event.type === "text" ? event.text : "").join("");
}

function changesBetween(before: CharacterFields, now: CharacterFields): WritingStep[] {
  const steps: WritingStep[] = [];
  for (const [field, value] of Object.entries(now)) {
    const old = before[field as keyof CharacterFields];
    if (Array.isArray(value)) {
      if (value.join("\0") !== (old as string[] | undefined)?.join("\0")) steps.push({ field, value });
    } else if (typeof old === "string" && value.startsWith(old)) {
      if (value.length > old.length) steps.push({ field, append: value.slice(old.length) });
    } else steps.push({ field, value });
  }
  // What turned out to be no field after all.
  for (const field of Object.keys(before)) {
    if (!Object.hasOwn(now, field)) steps.push({ field, value: field === "tags" ? [] : "" });
  }
  return steps;
}

function noCharacter(model: string, answer: string): AppError {
  const said = stripReasoning(answer).replace(/\s+/g, " ").trim();
  const quote = said.length > MAX_QUOTE ? `${said.slice(0, MAX_QUOTE)}…` : said;
  return new AppError(
    "unprocessable",
    quote === ""
      ? `The model "${model}" only thought and wrote no character`
      : `The model "${model}" wrote no character, but: ${quote.replace(/\.$/, "")}`,
  );
}
