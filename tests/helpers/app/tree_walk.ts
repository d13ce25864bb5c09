/** Two clients that change one conversation at random. After each step, the API is compared with a model. */
import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import type { FakeLlm } from "../fakes/llm/fake_llm.ts";
import { until } from "./chat_client.ts";
import { type ModelMessage, type PutMessage, type Removed, TreeModel } from "./tree_model.ts";

/** A server that can restart. */
export interface WalkedServer {
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  restart(): Promise<void>;
  /** True if a restart kills the process. */
  isKilled: boolean;
}

interface Shown {
  id: string;
  role: string;
  content: string;
  created_at: string;
  variant_count: number;
  active_variant: number;
  status: string;
}

/** The state that a client last saw. */
interface Client {
  revision: number;
  messages: string[];
}

/** Restores a revision in the model. Returns false if the server refuses it. */
type Undo = (model: TreeModel) => boolean;

/** Number of messages above which messages are removed. */
const MANY = 70;

/** A seeded random number generator. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** @returns A number from 0 up to and without 1. @see https://gist.github.com/tommyettinger/46a874533244883189143505d203312c */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  of<T>(list: readonly T[]): T | undefined {
    return list[this.below(list.length)];
  }
}

/** A random walk over one conversation. */
export class TreeWalk {
  readonly #server: WalkedServer;
  readonly #llm: FakeLlm;
  readonly #path: string;
  readonly #id: string;
  readonly #random: Random;
  readonly #clients: Client[] = [{ revision: 0, messages: [] }, { revision: 0, messages: [] }];
  readonly #trash: { id: string; removed: Removed }[] = [];
  readonly #undo = new Map<number, Undo>();
  readonly #removedBy = new Map<Undo, Removed>();
  #model = new TreeModel();
  #revision = 0;
  #count = 0;
  #log: string[] = [];
  readonly done = new Map<string, number>();

  constructor(server: WalkedServer, llm: FakeLlm, id: string, seed: number) {
    this.#server = server;
    this.#llm = llm;
    this.#id = id;
    this.#path = `/api/conversations/${id}`;
    this.#random = new Random(seed);
  }

  /** Takes a number of steps. @throws {Error} with the last steps if the API differs from the model. */
  async go(steps: number): Promise<void> {
    await this.#expect("PUT", this.#path, { messages: [] }, 201);
    await this.#compare();
    for (let step = 0; step < steps; step++) {
      try {
        await this.#step();
        await this.#compare();
        if (step % 25 === 24) await this.#compareAll();
      } catch (error) {
        throw new Error(
          `step ${step} of ${this.#id}, after:\n${this.#log.slice(-14).map((line) => line.slice(0, 220)).join("\n")}`,
          { cause: error },
        );
      }
    }
    await this.#compareAll();
  }

  async #step(): Promise<void> {
    const random = this.#random;
    const client = random.of(this.#clients)!;
    if (random.next() < 0.5) this.#look(client);
    const steps: [number, string, (client: Client) => Promise<void>][] = [
      [14, "add", (client) => this.#add(client)],
      [8, "patch", (client) => this.#patch(client)],
      [12, "switch", (client) => this.#switch(client)],
      [this.#server.isKilled ? 6 : 8, "edit", (client) => this.#edit(client)],
      [4, "send", (client) => this.#send(client)],
      [3, "regenerate", (client) => this.#regenerate(client)],
      [6, "remove", (client) => this.#remove(client, false)],
      [2, "removeFrom", (client) => this.#remove(client, true)],
      [7, "restore", () => this.#restore()],
      [3, "put", (client) => this.#put(client)],
      [5, "undo", () => this.#restoreRevision()],
      [this.#server.isKilled ? 3 : 0.3, "restart", () => this.#restart()],
      [this.#server.isKilled ? 3 : 1, "during a reply", () => this.#duringReply()],
    ];
    const isMany = this.#model.lists().flat().length > MANY;
    let at = random.next() * steps.reduce((sum, [weight]) => sum + weight, 0);
    const [, name, walk] = isMany ? [1, "removeFrom", () => this.#remove(client, true)] as const : steps.find((
      [weight],
    ) => (at -= weight) < 0)!;
    this.done.set(name, (this.done.get(name) ?? 0) + 1);
    await walk(client);
  }

  /** A client fetches the conversation. */
  #look(client: Client): void {
    client.revision = this.#revision;
    client.messages = this.#model.path().map(({ id }) => id);
  }

  #newId(kind: string): string {
    return `${kind}${++this.#count}`;
  }

  /** Some texts are long, so that blocks are split again and again. */
  #text(): string {
    const word = `text ${this.#count} ${this.#random.below(1e6)}`;
    return this.#random.next() < 0.15 ? `${word} ${"l ".repeat(this.#random.below(1500))}` : word;
  }

  /** Returns the expected status for the state of a target: on the path, off the path, or removed. */
  #statusFor(mid: string, ok: number): number {
    if (this.#model.isOnPath(mid)) return ok;
    return this.#model.find(mid) === undefined ? 404 : 409;
  }

  async #expect(
    method: string,
    path: string,
    body: unknown,
    status: number,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const line = `${method} ${path} ${JSON.stringify(body)?.slice(0, 300) ?? ""} ${JSON.stringify(headers)}`;
    this.#log.push(`${line} -> ${status}`);
    const answer = await this.#server.request(method, path, body, headers);
    if (answer.status !== status) {
      throw new Error(`${line} was answered with ${answer.status}: ${await answer.text()}, not ${status}`);
    }
    return answer;
  }

  /** Sends a change, sometimes with If-Match. */
  async #change(
    client: Client,
    method: string,
    path: string,
    body: unknown,
    status: number,
  ): Promise<Response | undefined> {
    const isConditional = this.#random.next() < 0.2;
    const isStale = isConditional && client.revision !== this.#revision;
    const headers: Record<string, string> = isConditional ? { "if-match": `"${client.revision}"` } : {};
    const answer = await this.#expect(method, path, body, isStale ? 412 : status, headers);
    if (isStale || !answer.ok) {
      await answer.body?.cancel();
      return undefined;
    }
    return answer;
  }

  #kept(undo: Undo): void {
    this.#undo.set(this.#revision, undo);
  }

  async #add(client: Client): Promise<void> {
    const after = this.#random.next() < 0.4 ? this.#random.of(client.messages) : undefined;
    const message = {
      id: this.#newId("m"),
      role: this.#random.next() < 0.5 ? "user" : "assistant",
      content: this.#text(),
    };
    const status = after === undefined ? 201 : this.#statusFor(after, 201);
    const answer = await this.#change(client, "POST", `${this.#path}/messages`, { message, after }, status);
    if (answer === undefined) return;
    await answer.body?.cancel();
    this.#model.add(modelMessage(message), after);
  }

  async #patch(client: Client): Promise<void> {
    const mid = this.#random.of(client.messages);
    if (mid === undefined) return;
    const content = this.#text();
    const answer = await this.#change(
      client,
      "PATCH",
      `${this.#path}/messages/${mid}`,
      { content },
      this.#statusFor(mid, 200),
    );
    if (answer === undefined) return;
    await answer.body?.cancel();
    const { message } = this.#model.find(mid)!;
    const [n, before] = [message.active, message.texts[message.active]];
    message.texts[n] = content;
    this.#kept((model) => {
      return restoreText(model, mid, n, before);
    });
  }

  async #switch(client: Client): Promise<void> {
    const many = client.messages.filter((mid) => (this.#model.find(mid)?.message.texts.length ?? 0) > 1);
    const mid = this.#random.of(many);
    if (mid === undefined) return;
    const { message } = this.#model.find(mid)!;
    const n = this.#random.below(message.texts.length + 1);
    const isThere = n < message.texts.length;
    const status = this.#statusFor(mid, isThere ? 200 : 400);
    const isSame = n === message.active;
    const answer = await this.#change(client, "PATCH", `${this.#path}/messages/${mid}`, { active_variant: n }, status);
    if (answer === undefined) return;
    expect(await answer.json()).toMatchObject({ id: mid, active_variant: n });
    if (isSame) {
      const text = message.texts[n];
      this.#kept((model) => {
        return restoreText(model, mid, n, text);
      });
    }
    this.#model.switch(mid, n);
  }

  #says(text: string): void {
    this.#llm.switches.manual = "off";
    this.#llm.pieces = [text.slice(0, 3), text.slice(3)];
  }

  #chatBody(action: string, fields: Record<string, unknown>) {
    return { conversation_id: this.#id, action, stream: false, ...fields };
  }

  async #settled(): Promise<void> {
    await until(
      async () => (await (await this.#server.request("GET", "/api/chat/replies")).json()).length === 0,
      "every reply is settled",
    );
  }

  async #edit(client: Client): Promise<void> {
    const mid = this.#random.of(client.messages);
    if (mid === undefined) return;
    const role = this.#model.find(mid)?.message.role;
    const status = this.#statusFor(mid, role === "user" ? 200 : 400);
    const [reply, content, answer] = [this.#newId("r"), this.#text(), `reply ${this.#count}`];
    this.#says(answer);
    const fields = { user_message_id: mid, assistant_message_id: reply, messages: [{ role: "user", content }] };
    const times = status === 200 && this.#random.next() < 0.2 ? 2 : 1;
    for (let time = 0; time < times; time++) {
      const response = await this.#expect("POST", "/api/chat", this.#chatBody("edit", fields), status);
      await response.body?.cancel();
    }
    if (status !== 200) return;
    await this.#settled();
    this.#model.addVersion(mid, content, modelMessage({ id: reply, role: "assistant", content: answer }));
  }

  async #send(_client: Client): Promise<void> {
    const [user, reply, content, answer] = [this.#newId("u"), this.#newId("r"), this.#text(), `reply ${this.#count}`];
    this.#says(answer);
    const fields = { user_message_id: user, assistant_message_id: reply, messages: [{ role: "user", content }] };
    const response = await this.#expect("POST", "/api/chat", this.#chatBody("send", fields), 200);
    await response.body?.cancel();
    await this.#settled();
    this.#model.add(modelMessage({ id: user, role: "user", content }));
    this.#model.add(modelMessage({ id: reply, role: "assistant", content: answer }));
  }

  async #regenerate(client: Client): Promise<void> {
    const mid = this.#random.of(client.messages.filter((mid) => mid.startsWith("r")));
    if (mid === undefined) return;
    const status = this.#statusFor(mid, 200);
    const answer = `another reply ${++this.#count}`;
    this.#says(answer);
    const fields = { assistant_message_id: mid, messages: [{ role: "user", content: "go" }] };
    if (status === 200 && this.#random.next() < 0.4) return await this.#failToRegenerate(mid, fields);
    const response = await this.#expect("POST", "/api/chat", this.#chatBody("regenerate", fields), status);
    await response.body?.cancel();
    if (status !== 200) return;
    await this.#settled();
    const { message } = this.#model.find(mid)!;
    message.texts.push(answer);
    message.active = message.texts.length - 1;
  }

  /** The previous reply stays active. The text of a failed one becomes an inactive version. */
  async #failToRegenerate(mid: string, fields: Record<string, unknown>): Promise<void> {
    const after = this.#random.below(2);
    this.done.set("failed regenerate", (this.done.get("failed regenerate") ?? 0) + 1);
    this.#log.push(`a regenerate of ${mid} fails after ${after} pieces`);
    Object.assign(this.#llm.switches, { fail: "cut", after });
    const response = await this.#server.request("POST", "/api/chat", this.#chatBody("regenerate", fields));
    await response.body?.cancel();
    await this.#settled();
    this.#llm.switches.fail = "none";
    if (after > 0) this.#model.find(mid)!.message.texts.push(this.#llm.pieces[0]!);
  }

  async #remove(client: Client, isAll: boolean): Promise<void> {
    const mid = this.#random.of(client.messages.slice(isAll ? Math.floor(client.messages.length / 4) : 0));
    if (mid === undefined) return this.#look(client);
    const path = `${this.#path}/messages/${mid}${isAll ? "?following=true" : ""}`;
    const answer = await this.#change(client, "DELETE", path, undefined, this.#statusFor(mid, 204));
    if (answer === undefined) return;
    const removed = this.#model.remove(mid, isAll);
    this.#trash.push({ id: answer.headers.get("x-parlor-trash-id")!, removed });
    const undo: Undo = (model) => model.restore(removed);
    this.#removedBy.set(undo, removed);
    this.#kept(undo);
  }

  async #restore(): Promise<void> {
    const item = this.#random.of(this.#trash.slice(-6));
    if (item === undefined || !this.#model.knowsPlaceOf(item.removed)) return;
    const model = this.#model.clone();
    const isRestored = model.restore(item.removed);
    const answer = await this.#expect("POST", `/api/trash/${item.id}/restore`, undefined, isRestored ? 204 : 409);
    await answer.body?.cancel();
    if (!isRestored) return;
    this.#model = model;
    this.#trash.splice(this.#trash.indexOf(item), 1);
  }

  #putBody(client: Client): PutMessage[] {
    const random = this.#random;
    const messages: PutMessage[] = client.messages.filter((mid) => this.#model.isOnPath(mid)).flatMap((id) => {
      const { message } = this.#model.find(id)!;
      const chance = random.next();
      if (chance < 0.06) return [];
      const content = chance < 0.12 ? this.#text() : message.texts[message.active]!;
      return [{ id, role: message.role, content }];
    });
    if (random.next() < 0.3 && messages.length > 1) {
      const [moved] = messages.splice(random.below(messages.length), 1);
      messages.splice(random.below(messages.length), 0, moved!);
    }
    if (random.next() < 0.5) {
      messages.splice(random.below(messages.length + 1), 0, {
        id: this.#newId("m"),
        role: "user",
        content: this.#text(),
      });
    }
    return messages;
  }

  async #put(client: Client): Promise<void> {
    const messages = this.#putBody(client);
    const off = this.#model.lists().flat().filter(({ id }) => !this.#model.isOnPath(id));
    if (off.length > 0 && this.#random.next() < 0.1) {
      const body = { messages: [...messages, { id: off[0]!.id, role: "user", content: "x" }] };
      await (await this.#expect("PUT", this.#path, body, 409)).body?.cancel();
      return;
    }
    const before = this.#model.clone();
    const answer = await this.#change(client, "PUT", this.#path, { messages }, 200);
    if (answer === undefined) return;
    await answer.body?.cancel();
    this.#model.put(messages);
    this.#keptAll(before);
  }

  /** A change of all messages can be undone; one of none keeps the fields of the conversation alone. */
  #keptAll(before: TreeModel): void {
    if (isDeepStrictEqual(before.root, this.#model.root)) return;
    this.#kept((model) => (model.restoreAll(before), true));
  }

  async #restoreRevision(): Promise<void> {
    const listed: { n: number; cause: string; message_count: number }[] =
      await (await this.#expect("GET", `${this.#path}/revisions`, undefined, 200)).json();
    const known = listed.map(({ n }) => n).filter((n) => this.#undo.has(n)).slice(0, 8);
    const n = this.#random.of(known);
    if (n === undefined) return;
    this.#log.push(`at ${this.#revision}: ${JSON.stringify(listed.find((one) => one.n === n))}`);
    // Skipped if the model doesn't know the position.
    const removed = this.#removedAt(n);
    if (removed !== undefined && !this.#model.knowsPlaceOf(removed)) return;
    const [before, model] = [this.#model.clone(), this.#model.clone()];
    const isRestored = this.#undo.get(n)!(model);
    const answer = await this.#expect(
      "POST",
      `${this.#path}/revisions/${n}/restore`,
      undefined,
      isRestored ? 200 : 409,
    );
    await answer.body?.cancel();
    if (!isRestored) return;
    this.#model = model;
    if (model.epoch !== before.epoch && removed === undefined) this.#keptAll(before);
  }

  #removedAt(n: number): Removed | undefined {
    return this.#removedBy.get(this.#undo.get(n)!);
  }

  async #restart(): Promise<void> {
    this.#log.push("restart");
    if (!this.#server.isKilled) return await this.#server.restart();
    // A change in flight when the server is killed is stored completely or not at all.
    const [content, id] = [this.#text(), this.#newId("m")];
    const before = this.#model.clone();
    const mid = this.#random.of(before.path().filter(({ role }) => role === "user"))?.id;
    const requests: [method: string, path: string, body: unknown, change: () => void][] = [
      ["POST", `${this.#path}/messages`, { message: { id, role: "user", content } }, () => {
        this.#model.add(modelMessage({ id, role: "user", content }));
      }],
    ];
    if (mid !== undefined) {
      const n = this.#random.below(before.find(mid)!.message.texts.length);
      requests.push([
        "PATCH",
        `${this.#path}/messages/${mid}`,
        { active_variant: n },
        () => this.#model.switch(mid, n),
      ]);
      const kept = before.path().filter((message) => message.id !== mid);
      const messages = kept.map(({ id, role, texts, active }) => ({ id, role, content: texts[active]! }));
      requests.push(["PUT", this.#path, { messages }, () => this.#model.put(messages)]);
    }
    const [method, path, body, change] = this.#random.of(requests)!;
    this.#log.push(`${method} ${path} ${JSON.stringify(body).slice(0, 200)} and kill`);
    const answer = this.#server.request(method, path, body).then((response) => response.status, () => undefined);
    await new Promise((resolve) => setTimeout(resolve, this.#random.below(12)));
    await this.#server.restart();
    const status = await answer;
    const shown = await this.#shown();
    change();
    const isThere = isSame(shown, this.#model);
    // Acknowledged changes are stored.
    if (status !== undefined && status < 300) expect(isThere, `an acknowledged ${method}`).toBe(true);
    if (!isThere) this.#model = before;
    this.#undo.clear();
  }

  /** Changes that would remove a running reply are refused. Then the reply or the server ends. */
  async #duringReply(): Promise<void> {
    const [user, reply, content] = [this.#newId("u"), this.#newId("r"), this.#text()];
    this.#llm.switches.manual = "on";
    const ids = { user_message_id: user, assistant_message_id: reply, messages: [{ role: "user", content }] };
    this.#log.push(`a reply ${reply} begins`);
    const body = { conversation_id: this.#id, ...ids };
    const asked = this.#server.request("POST", "/api/chat", body).then((response) => response.text()).catch(() => "");
    const call = await this.#llm.nextCall();
    await call.emit("partly");
    await until(async () => (await this.#shown()).at(-1)?.content === "partly", "the reply has begun");
    this.#model.add(modelMessage({ id: user, role: "user", content }));
    this.#model.add(modelMessage({ id: reply, role: "assistant", content: "partly" }));
    const branch = this.#model.path().find(({ next, texts }) => next !== undefined && texts.length > 1);
    if (branch !== undefined) {
      const n = (branch.active + 1) % branch.texts.length;
      await (await this.#expect("PATCH", `${this.#path}/messages/${branch.id}`, { active_variant: n }, 409)).body
        ?.cancel();
      await (await this.#expect("DELETE", `${this.#path}/messages/${branch.id}`, undefined, 409)).body?.cancel();
    }
    const edit = this.#chatBody("edit", { ...ids, assistant_message_id: this.#newId("r") });
    await (await this.#expect("POST", "/api/chat", edit, 409)).body?.cancel();
    if (this.#random.next() < 0.5) {
      this.#log.push("restart during a reply");
      await this.#server.restart();
      await call.fail().catch(() => {});
      await asked;
    } else {
      await call.emit(" and whole");
      await call.finish();
      await asked;
      await this.#settled();
      this.#model.find(reply)!.message.texts[0] = "partly and whole";
    }
    this.#llm.switches.manual = "off";
  }

  async #shown(): Promise<Shown[]> {
    const answer = await this.#server.request("GET", this.#path);
    const conversation = await answer.json();
    if (!answer.ok) throw new Error(`the conversation was answered with ${answer.status}`);
    this.#revision = conversation.revision;
    for (const { id, created_at } of conversation.messages) this.#model.createdAt.set(id, created_at);
    return conversation.messages;
  }

  async #compare(): Promise<void> {
    const shown = await this.#shown();
    this.#adopt(shown);
    expect(shown.map(facts)).toEqual(this.#model.path().map(modelFacts));
  }

  /** Copies texts that the model can't know from the API. */
  #adopt(shown: Shown[]): void {
    for (const { id, content, active_variant: n } of shown) {
      const message = this.#model.find(id)?.message;
      if (message !== undefined && message.texts[n] === undefined) message.texts[n] = content;
    }
  }

  /** Compares all continuations, the summary, and a page. */
  async #compareAll(): Promise<void> {
    const whole = await (await this.#expect("GET", `${this.#path}/export?format=json`, undefined, 200)).json();
    const order = (one: { message_id: string; n: number }) => `${one.message_id} ${one.n}`;
    const sorted = <T extends { message_id: string; n: number }>(list: T[]) =>
      list.toSorted((a, b) => order(a) < order(b) ? -1 : 1);
    const shown: { message_id: string; n: number; messages: Shown[] }[] = whole.continuations ?? [];
    for (const { messages } of [whole, ...shown]) this.#adopt(messages);
    expect(sorted(shown).map((one) => [order(one), one.messages.map(facts)])).toEqual(
      sorted(this.#model.continuations()).map((one) => [order(one), one.path.map(modelFacts)]),
    );
    for (const { id, variants = [] } of [whole, ...shown].flatMap(({ messages }) => messages)) {
      const { message } = this.#model.find(id)!;
      for (const { n, content } of variants as { n: number; content: string }[]) {
        message.texts[n] ??= content;
        expect([id, n, content]).toEqual([id, n, message.texts[n]]);
      }
    }
    const path = this.#model.path();
    const list = await (await this.#expect("GET", "/api/conversations?view=summary&limit=500", undefined, 200)).json();
    const summary = list.items.find((item: { id: string }) => item.id === this.#id);
    expect(summary.message_count).toBe(path.length);
    const last = path.at(-1);
    const start = (last?.texts[last.active] ?? "").replace(/\s+/g, " ").trim().slice(0, 60);
    expect(summary.snippet.slice(0, start.length)).toBe(start);
    const page = await (await this.#expect("GET", `${this.#path}/messages?limit=5`, undefined, 200)).json();
    expect(page.items.map(facts)).toEqual(path.slice(-5).map(modelFacts));
  }
}

function modelMessage({ id, role, content }: PutMessage): ModelMessage {
  return { id, role, texts: [content], active: 0 };
}

function facts({ id, role, content, variant_count: count, active_variant: active }: Shown) {
  return { id, role, content, count, active };
}

function modelFacts({ id, role, texts, active }: ModelMessage) {
  return { id, role, content: texts[active], count: texts.length, active };
}

/** Returns false if the version doesn't exist or isn't on the path. */
function restoreText(model: TreeModel, mid: string, n: number, text: string | undefined): boolean {
  if (!model.isOnPath(mid) || n >= model.find(mid)!.message.texts.length) return false;
  model.switch(mid, n);
  model.find(mid)!.message.texts[n] = text;
  return true;
}

function isSame(shown: Shown[], model: TreeModel): boolean {
  return JSON.stringify(shown.map(facts)) === JSON.stringify(model.path().map(modelFacts));
}
