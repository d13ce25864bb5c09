/** Streams a character as a model writes it. */
import type { ModelRouter } from "../../llm/model_router.ts";
import { stripReasoning } from "../../llm/reasoning.ts";
import { AppError } from "../../errors.ts";
import type { ChatEvent } from "../../llm/chat_event.ts";
import type { ChatStream } from "../../llm/upstream_client.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import { type CharacterFields, parseCharacterFields } from "./character_fields.ts";
import { type CharacterIdea, createCharacterCall } from "./character_prompt.ts";

/** How a field changes: appended text, or a new value. */
export type FieldUpdate = { field: string; append: string } | { field: string; value: string | string[] };

/** A model's reply in progress. */
export interface CharacterStream {
  model: string;
  /**
   * Yields updates with each chunk of the reply; none while the model reasons.
   *
   * @returns Whether the output was cut off.
   * @throws {AppError} `unprocessable` if the reply contains no character; errors of an interrupted chat reply
   */
  updates(): AsyncGenerator<FieldUpdate[], { isCut: boolean }>;
  /** Cancels the upstream request. */
  cancel(): void;
}

/** Maximum reply length in characters. Longer replies are endless loops. */
const MAX_ANSWER = 120_000;
/** Maximum length of the quote in an error message. */
const MAX_QUOTE = 400;

/**
 * Asks the active connection.
 *
 * @throws {AppError} `not_available` without a connection or with only the demo; errors of a chat before its first byte
 */
export async function openCharacterStream(
  models: ModelRouter,
  idea: CharacterIdea,
  signal: AbortSignal,
): Promise<CharacterStream> {
  const { target, model } = await models.route({}, signal);
  if (target.kind === "demo") {
    throw new AppError("not_available", "The demo cannot write characters; choose a model under Settings, Connections");
  }
  const open = (isHeld: boolean) =>
    models.client.openChatStream(target, createCharacterCall(target, model, idea, isHeld), signal);
  let stream: ChatStream;
  try {
    stream = await open(target.kind === "openai");
  } catch (error) {
    if (target.kind !== "openai" || !mayRejectSchema(error)) throw error;
    stream = await open(false);
  }
  return { model, updates: () => readUpdates(stream, model), cancel: () => stream.cancel() };
}

/** Servers without support for `response_format`, or for this schema, reject the whole call with various messages. */
function mayRejectSchema(error: unknown): boolean {
  if (!(error instanceof UpstreamError) || error.kind !== "failed") return false;
  return error.status !== undefined && error.status >= 400;
}

async function* readUpdates(stream: ChatStream, model: string): AsyncGenerator<FieldUpdate[], { isCut: boolean }> {
  let answer = "";
  let isCut = false;
  let known: CharacterFields = {};
  try {
    for await (const batch of stream.batches()) {
      const text = joinText(batch);
      isCut ||= batch.some((event) => event.type === "finish" && event.reason === "length");
      if (text === "") {
        yield [];
        continue;
      }
      answer += text;
      const now = parseCharacterFields(answer);
      yield diffFields(known, now);
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

function joinText(batch: readonly ChatEvent[]): string {
  return batch.map((event) => event.type === "text" ? event.text : "").join("");
}

function diffFields(before: CharacterFields, now: CharacterFields): FieldUpdate[] {
  const steps: FieldUpdate[] = [];
  for (const [field, value] of Object.entries(now)) {
    const old = before[field as keyof CharacterFields];
    if (Array.isArray(value)) {
      if (value.join("\0") !== (old as string[] | undefined)?.join("\0")) steps.push({ field, value });
    } else if (typeof old === "string" && value.startsWith(old)) {
      if (value.length > old.length) steps.push({ field, append: value.slice(old.length) });
    } else steps.push({ field, value });
  }
  // Fields that turned out not to be fields.
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
