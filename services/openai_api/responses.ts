/** Responses of the Responses API: reads requests, runs replies, and keeps what later requests refer to. */
import { Buffer } from "node:buffer";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import { isJsonObject, isNonEmptyString } from "../json/type_guards.ts";
import type { ChatEvent, ChatMessage, Usage } from "../llm/chat_event.ts";
import {
  createIssue,
  getItemType,
  type HiddenReasoning,
  type KeptItem,
  type ResponseItem,
  type ResponseSettings,
  toChatMessages,
  toChatParams,
} from "./response_input.ts";
import { createResponseId, type ResponseEvent, type ResponseObject, ResponseWriter } from "./response_output.ts";
import type { ResponseCaller, ResponseStore } from "./response_store.ts";
import {
  findStoredReply,
  type ReadMessages,
  type StoredReply,
  toContextItems,
  toStoredResponse,
} from "./stored_replies.ts";

/** A request, as far as this service reads it. */
export interface ResponseRequest extends ResponseSettings {
  model: string;
  input?: string | Record<string, unknown>[] | null;
  instructions?: string | null;
  previous_response_id?: string | null;
  store?: boolean | null;
  include?: string[] | null;
}

/** A request that is ready for the model. */
export interface OpenedResponse {
  messages: ChatMessage[];
  /** Parameters of the chat request. */
  params: Record<string, unknown>;
  writer: ResponseWriter;
  /** Saves what was completed; does nothing without `store`. */
  save(): Promise<void>;
}

/** What a reply is read from. */
export interface ResponseRun {
  batches: AsyncIterable<ChatEvent[]>;
  /** Estimates the token counts if the server sends none. */
  estimateUsage(reply: string): Usage;
  /** Returns code and message of a failure for the client. */
  describeError(thrown: unknown): { code: string; message: string };
  /** Whether the client has disconnected. */
  isCancelled(): boolean;
}

/** Dependencies of Responses. */
interface ResponsesDeps {
  store: ResponseStore;
  sealer: PurposeSealer;
  /** Maximum size of the earlier items that a request refers to, in bytes. */
  maxContextBytes: number;
  /** Reads stored conversations, whose replies are responses, too. */
  readMessages: ReadMessages;
}

/** Location of `encrypted_content`, which isn't stored: clients send it back, some without its ID. */
const ENCRYPTED_AAD = { table: "response", id: "reasoning", field: "encrypted_content", version: 1 };

/** Reads and runs requests. */
export class Responses {
  readonly #deps: ResponsesDeps;
  /** Responses that are being written. Others that aren't complete were interrupted by a restart. */
  readonly #running = new Set<string>();

  constructor(deps: ResponsesDeps) {
    this.#deps = deps;
  }

  /**
   * Reads a request.
   *
   * @param previous The reply that `previous_response_id` means, if it's in a stored conversation.
   * @throws {AppError} `invalid_request` with the path of the field, `not_found` for an unknown response or item,
   *   `too_large`
   */
  open(request: ResponseRequest, caller: ResponseCaller, previous?: StoredReply): OpenedResponse {
    const { store } = this.#deps;
    const isStored = request.store !== false;
    const earlier: (KeptItem & { id?: string })[] = previous === undefined
      ? this.#findEarlier(request.previous_response_id, caller)
      : toContextItems(previous);
    const input = this.#readInput(request.input, caller);
    const unsupported = new Set<string>();
    const items = [...earlier, ...input];
    const messages = toChatMessages(items, request.instructions ?? undefined, unsupported);
    if (!messages.some(({ role }) => role !== "system")) throw createIssue("input", "it has no messages");
    const { params, customNames } = toChatParams(request, unsupported);
    const writer = new ResponseWriter({
      response: createResponse(request, [...unsupported]),
      customNames,
      encrypt: request.include?.includes("reasoning.encrypted_content") ? (hidden) => this.#encrypt(hidden) : undefined,
    });
    const itemIds: string[] = [];
    const unsaved = new Map<string, KeptItem>();
    if (isStored) {
      for (const { id, ...kept } of items) {
        const storedId = id ?? store.createInputId(kept, caller);
        itemIds.push(storedId);
        if (id === undefined) unsaved.set(storedId, kept);
      }
      for (const id of store.findStored([...unsaved.keys()])) unsaved.delete(id);
    }
    const save = async () => {
      if (!isStored) return;
      for (const kept of writer.takeCompleted()) {
        unsaved.set(kept.item.id!, kept);
        itemIds.push(kept.item.id!);
      }
      const added = new Map(unsaved);
      unsaved.clear();
      await store.save({ response: writer.response, itemIds }, added, caller);
    };
    return { messages, params, writer, save };
  }

  /**
   * Yields the events of a reply. Items and the response are stored before their events are yielded. A failure is the
   * last event.
   */
  async *run(
    { writer, save }: OpenedResponse,
    { batches, estimateUsage, describeError, isCancelled }: ResponseRun,
  ): AsyncGenerator<ResponseEvent[]> {
    const { response } = writer;
    const getUsage = () => completeUsage(writer.reportedUsage, () => estimateUsage(writer.written));
    this.#running.add(response.id);
    try {
      yield writer.start();
      let last: ResponseEvent;
      try {
        for await (const batch of batches) {
          const events = writer.add(batch);
          if (events.some(({ type }) => type === "response.output_item.done")) await save();
          if (events.length > 0) yield events;
        }
        if (isCancelled()) return;
        const events = writer.completeItems();
        await save();
        yield events;
        last = writer.end(getUsage());
      } catch (error) {
        last = writer.fail(describeError(error), getUsage());
      }
      await save().catch((error) => {
        if (response.status !== "failed") throw error;
      });
      yield [last];
    } finally {
      this.#running.delete(response.id);
      if (response.status === "in_progress") {
        response.status = "cancelled";
        // The client has disconnected and can't receive the error.
        await save().catch(() => {});
      }
    }
  }

  /** Finds a reply of a stored conversation, if the caller may read those. */
  async findReply(
    id: string | null | undefined,
    { tokenId, readsChats }: ResponseCaller,
  ): Promise<StoredReply | undefined> {
    if (!id || (tokenId !== undefined && readsChats !== true)) return undefined;
    return await findStoredReply(this.#deps.readMessages, id);
  }

  /** Returns a reply of a stored conversation as a response. */
  toResponse(reply: StoredReply): ResponseObject {
    return { ...createResponse({ model: reply.messages.at(-1)!.model ?? "" }, []), ...toStoredResponse(reply) };
  }

  /** Returns a stored response. @throws {AppError} `not_found` */
  get(id: string, caller: ResponseCaller): ResponseObject {
    const { response } = this.#deps.store.get(id, caller);
    if (response.status !== "in_progress" || this.#running.has(id)) return response;
    const error = { code: "interrupted", message: "Parlor stopped while the model was writing this response" };
    return { ...response, status: "failed", error };
  }

  /** Deletes a stored response. @throws {AppError} `not_found` */
  async delete(id: string, caller: ResponseCaller): Promise<void> {
    await this.#deps.store.delete(id, caller);
  }

  /** Removes what has expired. */
  async sweep(): Promise<void> {
    await this.#deps.store.sweep();
  }

  #findEarlier(id: string | null | undefined, caller: ResponseCaller): (KeptItem & { id: string })[] {
    if (!id) return [];
    const { store, maxContextBytes } = this.#deps;
    const fail = (cause?: unknown) => {
      const message = `Response "${
        id.slice(0, 200)
      }" not found. Responses are kept for 24 hours, unless store is false`;
      return new AppError("not_found", message, { cause, issues: [{ path: "previous_response_id", message }] });
    };
    let itemIds: string[];
    try {
      itemIds = store.get(id, caller).itemIds;
    } catch (error) {
      throw error instanceof AppError && error.code === "not_found" ? fail(error) : error;
    }
    if (store.getSizeBytes(itemIds) > maxContextBytes) {
      const message = `the earlier items are larger than ${maxContextBytes} bytes. Start a new response without them`;
      throw new AppError("too_large", `Can't use "previous_response_id": ${message}`, {
        issues: [{ path: "previous_response_id", message }],
      });
    }
    return itemIds.map((itemId) => {
      const found = store.findItem(itemId, caller);
      if (found === undefined) throw fail();
      return { ...found, id: itemId };
    });
  }

  #readInput(input: ResponseRequest["input"], caller: ResponseCaller): (KeptItem & { id?: string })[] {
    if (typeof input === "string") {
      return [{ item: { type: "message", role: "user", content: input } }];
    }
    return (input ?? []).map((item, index) => {
      const path = `input.${index}`;
      const type = getItemType(item);
      if (type === "item_reference") {
        const { id } = item;
        if (!isNonEmptyString(id)) throw createIssue(`${path}.id`, "it is required");
        const found = this.#deps.store.findItem(id, caller);
        if (found !== undefined) return { ...found, id };
        const message = `Item "${id.slice(0, 200)}" not found. Items are kept for 24 hours, unless store is false`;
        throw new AppError("not_found", message, { issues: [{ path: `${path}.id`, message }] });
      }
      const read = { ...item, type } as ResponseItem;
      return type === "reasoning" ? { item: read, hidden: this.#findHidden(read, caller) } : { item: read };
    });
  }

  /** Returns the hidden part of a reasoning item that the client sends back. */
  #findHidden({ id, encrypted_content: encrypted }: ResponseItem, caller: ResponseCaller): HiddenReasoning | undefined {
    if (isNonEmptyString(encrypted)) {
      try {
        const bytes = new Uint8Array(Buffer.from(encrypted, "base64url"));
        const hidden = JSON.parse(new TextDecoder().decode(this.#deps.sealer.openNow(ENCRYPTED_AAD, bytes)));
        return isJsonObject(hidden) ? hidden as unknown as HiddenReasoning : undefined;
      } catch {
        // From another server, or sealed with an earlier key. The summary is used instead.
        return undefined;
      }
    }
    return id === undefined ? undefined : this.#deps.store.findItem(id, caller)?.hidden;
  }

  #encrypt(hidden: HiddenReasoning): string {
    return Buffer.from(this.#deps.sealer.sealNow(ENCRYPTED_AAD, JSON.stringify(hidden))).toString("base64url");
  }
}

/** Adds counts that the server didn't send. */
function completeUsage(usage: Usage | undefined, estimate: () => Usage): Usage {
  if (typeof usage?.prompt_tokens === "number" && typeof usage.completion_tokens === "number") return usage;
  return { ...estimate(), ...usage };
}

/** Creates the response object of a request. */
function createResponse(request: ResponseRequest, unsupported: string[]): ResponseObject {
  return {
    id: createResponseId("resp"),
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    status: "in_progress",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    model: request.model,
    output: [],
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    reasoning: { effort: request.reasoning?.effort ?? null, summary: request.reasoning?.summary ?? null },
    service_tier: "default",
    store: request.store !== false,
    temperature: request.temperature ?? null,
    text: request.text ?? { format: { type: "text" } },
    tool_choice: request.tool_choice ?? "auto",
    tools: request.tools ?? [],
    top_p: request.top_p ?? null,
    truncation: "disabled",
    usage: null,
    metadata: request.metadata ?? {},
    unsupported,
  };
}
