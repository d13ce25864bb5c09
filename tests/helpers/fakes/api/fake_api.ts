/** A fake of Parlor's API that can fail on request, for states that are hard to reach with the real server. */
import type {
  ChatPreview,
  Connection,
  ConnectionTest,
  Conversation,
  DetectedServer,
  FoundServers,
  Health,
  Message,
  Settings,
} from "../../../../static/src/api/types.ts";
import { uiRoutes } from "../../../../routes/ui.ts";
import { answerInTime } from "../../network/slow_answers.ts";
import { characterRoutes, FakeCharacters } from "./fake_characters.ts";
import { conversationRoutes } from "./fake_conversations.ts";
import { FakeHouse, houseRoutes } from "./fake_house.ts";
import { FakeReply } from "./fake_reply.ts";

/** An error response that a test sets for a call. */
export interface Refusal {
  status: number;
  code: string;
  message: string;
}

/** A recorded request. */
export interface SeenRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: Headers;
  body: unknown;
}

/** Handles one kind of call. */
export type Handler = (request: SeenRequest, match: RegExpExecArray) => Response | Promise<Response>;

/** The fake API. Tests set and read its fields. */
export class FakeApi implements AsyncDisposable {
  readonly conversations = new Map<string, Conversation>();
  readonly replies = new Map<string, FakeReply>();
  /** All versions of messages with more than one, by message. */
  readonly variants = new Map<string, string[]>();
  /** All versions of user messages with more than one, with their continuations. */
  readonly continuations = new Map<string, { content: Message["content"]; following: Message[] }[]>();
  readonly requests: SeenRequest[] = [];
  readonly house = new FakeHouse();
  readonly people = new FakeCharacters();
  connections: Connection[] = [demoConnection()];
  found: DetectedServer[] = [];
  foundElsewhere: Partial<Omit<FoundServers, "models">> = {};
  testResult: ConnectionTest = { reachable: true, authorized: true, models: ["m"], latency_ms: 3 };
  health: Partial<Health> = {};
  settings: Settings = defaultSettings();
  hint: string | undefined;
  /** Where a proxy in front leads every request, because its sign-in has ended. */
  signInPath: string | undefined;
  isSetupCompleted = true;
  isContainer = false;
  discoverHosts = ["127.0.0.1"];
  /** Pieces of the next reply. If undefined, the test writes the reply. */
  script: string[] | undefined = ["Hel", "lo"];
  readonly attachments = new Map<string, Blob>();
  /** The preview, besides the messages of the request. */
  preview: Omit<ChatPreview, "messages" | "parts"> = {
    context: "server",
    model: "m",
    connection: { id: "demo", name: "Demo" },
    params: {},
    speakers: [],
    tokens: 120,
    counted_by: "estimate",
    context_size: 8192,
    context_size_assumed: true,
    answer_tokens: 1024,
    fits: true,
    trimmed: true,
    dropped: { count: 3, pieces: [], lorebook_entries: [] },
    documents: [],
    memories: [],
    memories_left_out: [],
    tools: [],
    tools_left_out: [],
    not_expanded: [],
  };
  readonly #refusals = new Map<string, Refusal>();
  readonly #listeners = new Set<ReadableStreamDefaultController<Uint8Array>>();
  readonly #ui: ReturnType<typeof uiRoutes>;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #routes: [method: string, pattern: RegExp, handler: Handler][];

  /** @param uiFolder Path of the built page that it serves. */
  constructor(uiFolder: string) {
    this.#ui = uiRoutes(uiFolder);
    this.#routes = this.#makeRoutes();
    const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    this.#server = Deno.serve(options, (request) => answerInTime(request, () => this.#answer(request)));
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Returns the requests of a method to a path so far. */
  seen(method: string, path: string | RegExp): SeenRequest[] {
    return this.requests.filter((each) =>
      each.method === method && (typeof path === "string" ? each.path === path : path.test(each.path))
    );
  }

  /** Makes all calls of a method to a path fail until `allow`. The last part of the path may be `*`. */
  refuse(call: string, refusal: Refusal): void {
    this.#refusals.set(call, refusal);
  }

  /** Stops the failure of a call. */
  allow(call: string): void {
    this.#refusals.delete(call);
  }

  /** Sends a change event to all open pages. */
  publish(kind: string, id: string, revision?: number): void {
    const frame = new TextEncoder().encode(`data: ${JSON.stringify({ kind, id, revision })}\n\n`);
    for (const listener of this.#listeners) listener.enqueue(frame);
  }

  /** Stores a conversation with these messages. */
  addConversation(id: string, title: string, messages: Partial<Message>[] = [], updatedAt = new Date()): Conversation {
    const iso = updatedAt.toISOString();
    const conversation: Conversation = {
      id,
      title,
      created_at: iso,
      updated_at: iso,
      revision: 1,
      draft: "",
      draft_version: 0,
      messages: messages.map((message, index) => stored({ id: `${id}-m${index}`, created_at: iso, ...message })),
    };
    this.conversations.set(id, conversation);
    return conversation;
  }

  /** Starts a reply in a conversation, like another device. */
  startReply(conversationId: string, messageId: string, text = ""): FakeReply {
    const conversation = this.conversations.get(conversationId)!;
    let message = conversation.messages.find((each) => each.id === messageId);
    if (!message) conversation.messages.push(message = stored({ id: messageId, role: "assistant", content: text }));
    message.status = "streaming";
    message.error = undefined;
    const reply = new FakeReply(conversationId, message, () => {
      conversation.revision++;
      this.publish("reply_ended", conversationId);
      this.publish("conversation", conversationId, conversation.revision);
    });
    this.replies.set(messageId, reply);
    conversation.revision++;
    this.publish("conversation", conversationId, conversation.revision);
    this.publish("reply_started", conversationId);
    return reply;
  }

  /** Saves a draft, like another device. */
  setDraft(conversationId: string, draft: string): void {
    const conversation = this.conversations.get(conversationId)!;
    conversation.draft = draft;
    conversation.draft_version++;
    this.publish("draft", conversationId, conversation.draft_version);
  }

  /** Disconnects all streams of a reply. */
  cutReplies(): void {
    for (const reply of this.replies.values()) reply.cut();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const reply of this.replies.values()) reply.leave();
    for (const listener of this.#listeners) listener.close();
    this.#listeners.clear();
    await this.#server.shutdown();
  }

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (url.pathname === this.signInPath) {
      return new Response("<h1>Sign in to the proxy</h1>", { headers: { "content-type": "text/html" } });
    }
    if (this.signInPath !== undefined) {
      return new Response(null, { status: 302, headers: { location: this.signInPath } });
    }
    if (!url.pathname.startsWith("/api/")) return await this.#ui.fetch(request);
    const body = await bodyOf(request);
    const { method, headers } = request;
    const seen = { method, path: url.pathname, query: url.searchParams, headers, body };
    this.requests.push(seen);
    const group = seen.path.replace(/[^/]+$/, "*");
    const refusal = this.#refusals.get(`${seen.method} ${seen.path}`) ??
      this.#refusals.get(`${seen.method} ${group}`) ?? this.#refusals.get("*");
    if (refusal) return failure(refusal);
    for (const [method, pattern, handler] of this.#routes) {
      const match = method === seen.method ? pattern.exec(seen.path) : null;
      if (match) return await handler(seen, match);
    }
    return failure({ status: 404, code: "not_found", message: "There is nothing under this path" });
  }

  #makeRoutes(): [string, RegExp, Handler][] {
    const gone = () => failure({ status: 404, code: "not_found", message: "There is no such reply" });
    return [
      ["GET", /^\/api\/conversations$/, ({ query }) => this.#list(query)],
      ...conversationRoutes(this),
      ...houseRoutes(this),
      ...characterRoutes(this),
      ["GET", /^\/api\/push\/subscriptions$/, () => json([])],
      ["PUT", /^\/api\/push\/presence$/, () => json({ needed: false })],
      ["GET", /^\/api\/push\/server$/, () => json({ kind: "ntfy", url: null, has_token: false })],
      ["GET", /^\/api\/(?:lorebooks|presets|documents)$/, () => json([])],
      ["GET", /^\/api\/conversations\/[^/]+\/queue$/, () => json({ version: 0, items: [] })],
      ["PATCH", /^\/api\/conversations\/([^/]+)\/draft$/, (request, [, id]) => this.#saveDraft(request, id!)],
      ["PUT", /^\/api\/attachments\/([^/]+)$/, ({ path, body }, [, name]) => {
        this.attachments.set(name!, body as Blob);
        return json({ name, url: path }, 201);
      }],
      ["GET", /^\/api\/attachments\/([^/]+)$/, (_, [, name]) => new Response(this.attachments.get(name!))],
      ["POST", /^\/api\/chat$/, (request) => this.#chat(request)],
      ["POST", /^\/api\/chat\/preview$/, ({ body }) => {
        const { messages } = body as { messages: { role: string; content: string }[] };
        return json({
          ...this.preview,
          messages: [{ role: "system", content: "You are kind." }, ...messages],
          parts: ["system_prompt", ...messages.map(() => "history")].map((part) => ({ part, tokens: 10 })),
        });
      }],
      [
        "GET",
        /^\/api\/chat\/replies$/,
        () => json([...this.replies.values()].filter((r) => r.isRunning).map((r) => r.listed())),
      ],
      ["GET", /^\/api\/chat\/replies\/([^/]+)$/, (request, [, mid]) => {
        const reply = this.replies.get(mid!);
        return reply ? reply.stream(request.headers.get("last-event-id") ?? undefined) : gone();
      }],
      ["POST", /^\/api\/chat\/replies\/([^/]+)\/stop$/, (_, [, mid]) => {
        const reply = this.replies.get(mid!);
        if (!reply) return gone();
        reply.end("stopped");
        return json(reply.message, 202);
      }],
      ["GET", /^\/api\/events$/, () => this.#events()],
      ["GET", /^\/api\/connections$/, () => json(this.connections)],
      [
        "GET",
        /^\/api\/conversations\/[^/]+\/regex_scripts$/,
        () => json({ attached: [], has_active: false, max_depth: 0 }),
      ],
      ["PUT", /^\/api\/connections$/, (request) => this.#saveConnection(request.body as Record<string, unknown>)],
      ["DELETE", /^\/api\/connections\/([^/]+)\/key$/, (_, [, id]) => {
        this.connections = this.connections.map((each) => each.id === id ? { ...each, has_key: false } : each);
        return none();
      }],
      ["DELETE", /^\/api\/connections\/([^/]+)$/, (_, [, id]) => {
        this.connections = this.connections.filter((each) => each.id !== id);
        return none();
      }],
      ["POST", /^\/api\/connections\/test$/, () => json(this.testResult)],
      [
        "GET",
        /^\/api\/models\/recommended$/,
        () => json({ memory_bytes: 2e9, free_disk_bytes: 2e9, items: [] }),
      ],
      ["GET", /^\/api\/models\/(?:downloads|local)$/, () => json([])],
      [
        "GET",
        /^\/api\/models\/local\/runner$/,
        () => json({ state: "stopped", program: null, restarts: 0, log: [] }),
      ],
      [
        "POST",
        /^\/api\/discover$/,
        () => json({ models: this.found, speech: [], transcription: [], images: [], ...this.foundElsewhere }),
      ],
      ["POST", /^\/api\/connections\/([^/]+)\/activate$/, (_, [, id]) => {
        this.connections = this.connections.map((each) => ({ ...each, active: each.id === id }));
        this.publish("connection", id!);
        return json(this.connections.find((each) => each.id === id));
      }],
      ["GET", /^\/api\/health$/, () => json(this.#health())],
      [
        "GET",
        /^\/api\/auth\/status$/,
        () =>
          json({
            rp_id: "127.0.0.1",
            origin: this.origin,
            paired: false,
            authenticated: false,
            method: null,
            bypass: "loopback",
            passkeys_supported: false,
            pairing: "open",
            hint: this.hint,
          }),
      ],
      ["GET", /^\/api\/settings$/, () => json(this.settings)],
      ["PATCH", /^\/api\/settings$/, (request) => {
        this.settings = { ...this.settings, ...request.body as Partial<Settings> };
        this.publish("settings", "owner_settings");
        return json(this.settings);
      }],
      ["GET", /^\/api\/setup\/status$/, () => json(this.#setup())],
      ["POST", /^\/api\/setup\/complete$/, () => {
        this.isSetupCompleted = true;
        return json(this.#setup());
      }],
    ];
  }

  #setup() {
    return { completed: this.isSetupCompleted, in_container: this.isContainer, discover_hosts: this.discoverHosts };
  }

  #list(query: URLSearchParams): Response {
    const all = [...this.conversations.values()]
      .sort((a, b) => b.updated_at.localeCompare(a.updated_at))
      .map(({ messages, ...head }) => ({
        last_message_at: messages.at(-1)?.created_at ?? head.updated_at,
        unread: false,
        snippet: "",
        character_ids: [],
        ...head,
        message_count: messages.length,
      }));
    const from = Number(query.get("cursor") ?? 0);
    const next = from + Number(query.get("limit") ?? 100);
    return json({ items: all.slice(from, next), next_cursor: next < all.length ? String(next) : null });
  }

  #saveDraft(request: SeenRequest, id: string): Response {
    const conversation = this.conversations.get(id);
    if (!conversation) return failure({ status: 404, code: "not_found", message: "There is no such conversation" });
    const wanted = request.headers.get("if-match");
    if (wanted !== null && wanted !== `"${conversation.draft_version}"`) {
      return failure({ status: 412, code: "revision_mismatch", message: "The draft has another version" });
    }
    conversation.draft = (request.body as { draft: string }).draft;
    conversation.draft_version++;
    this.publish("draft", id, conversation.draft_version);
    return new Response(null, { status: 204, headers: { etag: `"${conversation.draft_version}"` } });
  }

  #chat(request: SeenRequest): Response {
    const body = request.body as {
      conversation_id: string;
      user_message_id?: string;
      assistant_message_id: string;
      action?: string;
      messages: { role: string; content: string }[];
    };
    if (body.conversation_id === undefined) return this.#answerTemporary();
    const running = this.replies.get(body.assistant_message_id);
    if (running?.isRunning) return running.stream(undefined);
    const turn = body.messages.at(-1);
    const conversation = this.conversations.get(body.conversation_id) ??
      this.addConversation(body.conversation_id, turn?.content.slice(0, 40) ?? "");
    const isSend = (body.action ?? "send") === "send";
    if (isSend && turn?.role === "user" && !conversation.messages.some((each) => each.id === body.user_message_id)) {
      // Like the server, which records the speaker when the reply starts.
      const persona_id = conversation.persona_id ?? undefined;
      conversation.messages.push(stored({ id: body.user_message_id, role: "user", content: turn.content, persona_id }));
    }
    if (body.action === "edit") this.#addVersion(conversation, body.user_message_id!, turn!.content);
    const message = conversation.messages.find((each) => each.id === body.assistant_message_id);
    if (body.action === "regenerate" && message) {
      const texts = this.variants.get(message.id) ?? [];
      this.variants.set(message.id, [...texts, String(message.content)]);
      const count = (message.variant_count ?? 1) + 1;
      Object.assign(message, { content: "", variant_count: count, active_variant: count - 1 });
    }
    const reply = this.startReply(conversation.id, body.assistant_message_id);
    if (this.script) {
      for (const piece of this.script) reply.say(piece);
      reply.end("complete");
    }
    return reply.stream(reply.startId);
  }

  #addVersion(conversation: Conversation, mid: string, content: string): void {
    const at = conversation.messages.findIndex(({ id }) => id === mid);
    const message = conversation.messages[at]!;
    const versions = this.continuations.get(mid) ?? [];
    versions[message.active_variant ?? 0] = {
      content: message.content,
      following: conversation.messages.splice(at + 1),
    };
    this.continuations.set(mid, versions);
    const count = message.variant_count ?? 1;
    Object.assign(message, { content, variant_count: count + 1, active_variant: count });
  }

  /** A reply of a temporary chat, which only this response contains. */
  #answerTemporary(): Response {
    const message = stored({ role: "assistant" });
    const reply = new FakeReply("", message, () => {});
    this.replies.set(message.id, reply);
    for (const piece of this.script ?? []) reply.say(piece);
    if (this.script) reply.end("complete");
    return reply.stream(reply.startId);
  }

  #events(): Response {
    let listener: ReadableStreamDefaultController<Uint8Array>;
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#listeners.add(listener = controller);
        controller.enqueue(new TextEncoder().encode(": hello\n\n"));
      },
      cancel: () => {
        this.#listeners.delete(listener);
      },
    });
    return new Response(stream, { headers: { "content-type": "text/event-stream" } });
  }

  #saveConnection(body: Record<string, unknown>): Response {
    const { api_key, headers, server, ...fields } = body;
    const known = this.connections.find((each) => each.id === fields.id);
    const hasKey = api_key === undefined ? known?.has_key ?? false : api_key !== null;
    const id = typeof fields.id === "string" ? fields.id : `conn-${this.connections.length}`;
    const names = new Map((known?.header_names ?? []).map((name) => [name, "" as string | null]));
    for (const [name, value] of Object.entries(headers ?? {})) names.set(name, value);
    const saved = {
      active: false,
      ...known,
      ...fields,
      id,
      has_key: hasKey,
      header_names: [...names].filter(([, value]) => value !== null).map(([name]) => name),
      server: { ...known?.server, ...server as object },
      // An edit discards learned settings.
      refused: [],
    } as unknown as Connection;
    this.connections = known
      ? this.connections.map((each) => each.id === id ? saved : each)
      : [...this.connections, saved];
    this.publish("connection", id);
    return json(saved, known ? 200 : 201);
  }

  #health(): Health {
    const active = this.connections.find((each) => each.active);
    if (!active) return { status: "unconfigured", version: "0.1.0", refused_sign_ins: 0, connection: null };
    const { id, name, kind, base_url, model } = active;
    return {
      status: "ok",
      version: "0.1.0",
      refused_sign_ins: 0,
      connection: { id, name, kind, base_url, model, reachable: true, latency_ms: 12 },
      ...this.health,
    };
  }
}

/** The connection of a new installation. */
export function demoConnection(): Connection {
  const created_at = new Date().toISOString();
  return {
    id: "demo",
    name: "Demo",
    kind: "demo",
    base_url: "",
    has_key: false,
    header_names: [],
    server: {},
    refused: [],
    active: true,
    created_at,
    updated_at: created_at,
  };
}

/** The default settings. */
function defaultSettings(): Settings {
  return {
    display_name: "",
    default_persona_id: null,
    preset_id: null,
    language: null,
    theme: "system",
    accent_hue: null,
    font_size: 100,
    serif: false,
    send_on_enter: true,
    continue_after_restart: "private",
    user_markdown: false,
    line_breaks: "keep",
    color_speech: true,
    dim_actions: true,
    keep_found_lore: false,
    lore_budget_percent: 25,
    lore_budget_tokens: null,
    lore_min_activations: 0,
    lore_min_activations_depth: null,
    lore_max_recursion: null,
    lore_scans_names: true,
    lore_order: "character_first",
    portrait_size: "small",
    message_style: "plain",
    chat_background: null,
    prompt_templates: [],
    show_expressions: true,
    auto_title: true,
    auto_summary: true,
    memory_proposals: false,
    memory_asked: true,
    check_releases: false,
    dismissed_release: null,
    memory_budget_percent: 10,
    memory_idle_minutes: 30,
    auto_speak: false,
    keep_recordings: false,
    narration_voice: null,
    speech_voice: null,
  };
}

/** Reads JSON, a form or an image, by content type. */
async function bodyOf(request: Request): Promise<unknown> {
  const type = request.headers.get("content-type") ?? "";
  if (type.startsWith("multipart/form-data")) return await request.formData();
  if (type.startsWith("image/")) return await request.blob();
  const text = await request.text();
  return text === "" ? undefined : JSON.parse(text);
}

function stored(message: Partial<Message>): Message {
  const now = new Date().toISOString();
  return {
    id: crypto.randomUUID(),
    role: "user",
    content: "",
    status: "complete",
    created_at: now,
    updated_at: now,
    ...message,
  };
}

function json(value: unknown, status = 200): Response {
  return Response.json(value, { status });
}

function none(): Response {
  return new Response(null, { status: 204 });
}

function failure({ status, code, message }: Refusal): Response {
  return json({ error: { code, message, request_id: "req-1" } }, status);
}
