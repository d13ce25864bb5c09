/** A client that keeps changing its own conversations, and knows what the server must have stored after a crash. */
import { framesOf, understand } from "../app/chat_client.ts";
import type { ChildServer } from "../app/child_server.ts";
import type { StoredConversation } from "../app/stored_chat.ts";

/** The compared fields of a conversation. */
interface Known {
  title: string;
  draft: string;
  messages: [id: string, content: string][];
}

/** A change: the request, and the expected conversation. */
interface Change {
  method: string;
  path: string;
  body?: unknown;
  after: Known | undefined;
}

/** Changes one conversation, one request after another, each of another kind. */
export class RestlessWriter {
  readonly #n: number;
  /** A deleted conversation keeps its id in the trash, so the next one has another. */
  #id: string;
  #generation = 0;
  #count = 0;
  /** The acknowledged state; `undefined` without a conversation. */
  #known: Known | undefined;
  /** The unacknowledged change. */
  #open: Change | undefined;
  acknowledged = 0;

  constructor(n: number) {
    this.#n = n;
    this.#id = `w${n}`;
  }

  /** Writes until a request fails because the server was killed. */
  async write(server: ChildServer): Promise<void> {
    for (;;) {
      const change = this.#open = this.#next();
      try {
        const answer = await server.request(change.method, change.path, change.body);
        await answer.body?.cancel();
        if (!answer.ok) throw new Refused(`${change.method} ${change.path} was answered with ${answer.status}`);
      } catch (error) {
        if (error instanceof Refused) throw error;
        return;
      }
      this.#settle(change.after);
      this.acknowledged++;
    }
  }

  /** Throws unless the server has the acknowledged state, with or without the last change. */
  async check(server: ChildServer): Promise<void> {
    const answer = await server.request("GET", `/api/conversations/${this.#id}`);
    const found = answer.status === 404 ? undefined : knownOf(await answer.json());
    const allowed = [this.#known, ...(this.#open === undefined ? [] : [this.#open.after])];
    if (!allowed.some((state) => JSON.stringify(state) === JSON.stringify(found))) {
      throw new Error(`Conversation ${this.#id} is ${brief(found)} and must be ${allowed.map(brief).join(" or ")}`);
    }
    this.#settle(found);
  }

  #settle(state: Known | undefined): void {
    if (state === undefined) this.#id = `w${this.#n}-${++this.#generation}`;
    this.#known = state;
    this.#open = undefined;
  }

  #next(): Change {
    const n = ++this.#count;
    const path = `/api/conversations/${this.#id}`;
    const known = this.#known;
    if (known === undefined) {
      const messages = Array.from({ length: 40 }, (_, i): [string, string] => [`${this.#id}-${n}-${i}`, text(n)]);
      const body = { title: `Title ${n}`, messages: messages.map(([id, content]) => ({ id, role: "user", content })) };
      return { method: "PUT", path, body, after: { title: body.title, draft: "", messages } };
    }
    const { messages } = known;
    const at = n % messages.length;
    const mid = messages[at]?.[0];
    switch (n % 12) {
      case 1:
      case 5: {
        const draft = `Draft ${n}`;
        return { method: "PATCH", path: `${path}/draft`, body: { draft }, after: { ...known, draft } };
      }
      case 2: {
        const title = `Title ${n}`;
        return { method: "PATCH", path, body: { title }, after: { ...known, title } };
      }
      case 3:
      case 7:
        return {
          method: "DELETE",
          path: `${path}/messages/${mid}`,
          after: { ...known, messages: messages.filter(([id]) => id !== mid) },
        };
      case 4:
      case 8:
      case 10: {
        const message = { id: `${this.#id}-${n}`, role: "user", content: text(n) };
        const added: [string, string] = [message.id, message.content];
        return {
          method: "POST",
          path: `${path}/messages`,
          body: { message },
          after: { ...known, messages: [...messages, added] },
        };
      }
      case 11:
        if (n % 36 === 11) return { method: "DELETE", path, after: undefined };
        return {
          method: "DELETE",
          path: `${path}/messages/${messages.at(-1)![0]}?following=true`,
          after: { ...known, messages: messages.slice(0, -1) },
        };
      default: {
        const content = text(n);
        const edited = messages.map(([id, before]): [string, string] => [id, id === mid ? content : before]);
        return {
          method: "PATCH",
          path: `${path}/messages/${mid}`,
          body: { content },
          after: { ...known, messages: edited },
        };
      }
    }
  }
}

/** Sends messages to a model in its own conversation. */
export class RestlessAsker {
  readonly #n: number;
  /** Messages after which it starts a new chat. */
  readonly #perChat: number;
  #id: string;
  #count = 0;
  /** Text of each reply as far as it was seen, and whether its end was. */
  #seen = new Map<string, { text: string; isDone: boolean }>();
  acknowledged = 0;

  constructor(n: number, { perChat = Infinity } = {}) {
    this.#n = n;
    this.#perChat = perChat;
    this.#id = `q${n}`;
  }

  async write(server: ChildServer): Promise<void> {
    for (;;) {
      const n = ++this.#count;
      if (n % this.#perChat === 0) {
        await this.check(server);
        await (await server.request("DELETE", `/api/conversations/${this.#id}`)).body?.cancel();
        this.#id = `q${this.#n}-${n}`;
        this.#seen.clear();
      }
      const mid = `${this.#id}-a${n}`;
      try {
        const answer = await server.request("POST", "/api/chat", {
          conversation_id: this.#id,
          user_message_id: `${this.#id}-u${n}`,
          assistant_message_id: mid,
          messages: [{ role: "user", content: `question ${n}` }],
        });
        if (!answer.ok) throw new Refused(`A question was answered with ${answer.status}: ${await answer.text()}`);
        const frames = [];
        for await (const frame of framesOf(answer)) {
          frames.push(frame);
          const { text, isDone } = understand(frames);
          this.#seen.set(mid, { text, isDone });
        }
        this.acknowledged++;
      } catch (error) {
        if (error instanceof Refused) throw error;
        return;
      }
    }
  }

  /** Throws unless every reply follows its message and has at least the text that was seen. */
  async check(server: ChildServer): Promise<void> {
    if (this.#seen.size === 0) return;
    const { messages }: StoredConversation = await (await server.request("GET", `/api/conversations/${this.#id}`))
      .json();
    for (const [mid, { text, isDone }] of this.#seen) {
      const at = messages.findIndex(({ id }) => id === mid);
      const found = messages[at];
      const isWhole = !isDone || (found?.status === "complete" && found.content === text);
      if (!isWhole || !found?.content.startsWith(text) || messages[at - 1]?.role !== "user") {
        throw new Error(`Reply ${mid} was seen as ${JSON.stringify(text)} and is ${JSON.stringify(found)}`);
      }
    }
  }
}

/** The requests of a page. */
const PAGE_PATHS = [
  "/api/conversations?view=summary&limit=100",
  "/api/characters?limit=120",
  "/api/settings",
  "/api/chat/replies",
  "/api/connections",
  "/api/trash",
  "/api/search?q=text",
  "/api/personas",
  "/api/jobs",
  "/",
];

/** Reads what a page asks for, and each conversation of the first page of the list in turn. */
export class RestlessReader {
  #count: number;
  acknowledged = 0;

  constructor(n: number) {
    this.#count = n;
  }

  async write(server: ChildServer): Promise<void> {
    let ids: string[] = [];
    const read = async (path: string) => {
      const answer = await server.request("GET", path);
      const text = await answer.text();
      // A conversation may have been deleted since it was listed.
      if (!answer.ok && answer.status !== 404) throw new Refused(`GET ${path} was answered with ${answer.status}`);
      this.acknowledged++;
      return text;
    };
    for (;;) {
      const n = this.#count++;
      const path = PAGE_PATHS[n % PAGE_PATHS.length]!;
      try {
        const text = await read(path);
        if (path === PAGE_PATHS[0]) ids = JSON.parse(text).items.map(({ id }: { id: string }) => id);
        const id = ids[n % ids.length];
        if (id !== undefined) await read(`/api/conversations/${id}`);
      } catch (error) {
        if (error instanceof Refused) throw error;
        return;
      }
    }
  }

  /** Nothing to verify: it changes nothing. */
  check(): Promise<void> {
    return Promise.resolve();
  }
}

class Refused extends Error {}

function brief(state: Known | undefined): string {
  if (state === undefined) return "none";
  const messages = state.messages.map(([id, content]) => `${id} ${content.slice(0, 8)}`);
  return JSON.stringify({ ...state, messages: messages.slice(-5), count: messages.length });
}

function text(n: number): string {
  return `Text ${n} ${"x".repeat((n * 37) % 900)}`;
}

function knownOf({ title, draft, messages }: StoredConversation): Known {
  return { title, draft: draft as string, messages: messages.map(({ id, content }) => [id, content]) };
}
