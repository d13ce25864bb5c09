/** Parlor as its owner runs it: a process of its own, with the permissions of the start task and a folder of its own. */
import { startPermissions } from "../../build.ts";
import type { Program, Programs } from "./child.ts";
import { HttpConnection } from "./http_connection.ts";
import { type Answer, modelOf, textOf } from "./upstream_chunks.ts";

const ROOT = new URL("../../", import.meta.url);
const SETTLED_WITHIN_MS = 60_000;
const POLL_MS = 5;

/** How Parlor is started. */
export interface ParlorOptions {
  programs: Programs;
  dataDir: string;
  /** The compiled executable; without it Parlor runs from source. */
  executable?: string;
  /** Flags beside those for a free port and its folder. */
  args?: string[];
}

/** A message as benchmarks need it. */
export interface StoredMessage {
  id: string;
  role: string;
  content: string;
  status: string;
}

/** A running Parlor. */
export class Parlor {
  readonly program: Program;
  /** For what is not measured, one request after another. */
  readonly control: HttpConnection;

  private constructor(program: Program, control: HttpConnection) {
    this.program = program;
    this.control = control;
  }

  static async open(options: ParlorOptions): Promise<Parlor> {
    const program = await options.programs.start({ ...await parlorCommand(options), name: "Parlor" });
    return new Parlor(program, await HttpConnection.open(program.port));
  }

  get pid(): number {
    return this.program.pid;
  }

  get port(): number {
    return this.program.port;
  }

  /** Lets all replies come from this model server, and makes no further calls to it: titles are measured nowhere. */
  async useUpstream(port: number): Promise<void> {
    await this.control.json("PATCH", "/api/settings", { auto_title: false });
    const connection = { id: "bench", name: "Bench", kind: "openai", base_url: `http://127.0.0.1:${port}/v1` };
    const { id } = await this.control.json<{ id: string }>("PUT", "/api/connections", connection);
    await this.control.json("POST", `/api/connections/${id}/activate`, {});
    // A title made in a pause between rounds would ask the model once more.
    await this.control.json("PATCH", "/api/settings", { auto_title: false });
  }

  /** Gives a conversation's messages as they are stored. */
  async messages(conversationId: string): Promise<StoredMessage[]> {
    const path = `/api/conversations/${conversationId}`;
    return (await this.control.json<{ messages: StoredMessage[] }>("GET", path)).messages;
  }

  /** Waits until every reply is settled in the database. */
  async allSettled(): Promise<void> {
    const until = performance.now() + SETTLED_WITHIN_MS;
    while ((await this.control.json<unknown[]>("GET", "/api/chat/replies")).length > 0) {
      if (performance.now() > until) throw new Error(`Replies are not settled after ${SETTLED_WITHIN_MS} ms`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async stop(): Promise<void> {
    this.control.close();
    await this.program.stop();
  }
}

/** Gives the command line that starts Parlor on a free port. */
export async function parlorCommand(
  { dataDir, executable, args = [] }: Omit<ParlorOptions, "programs">,
): Promise<{ command: string; args: string[] }> {
  const own = ["--data-dir", dataDir, "--port", "0", ...args];
  if (executable !== undefined) return { command: executable, args: own };
  const main = new URL("main.ts", ROOT).pathname;
  return { command: Deno.execPath(), args: ["run", ...await startPermissions(), main, ...own] };
}

/** Gives the body that asks for an answer inside a conversation. */
export function chatBody(conversationId: string, assistantMessageId: string, answer: Answer): string {
  return JSON.stringify({
    model: modelOf(answer),
    messages: [{ role: "user", content: "Tell me how the light falls into the harbour in the evening." }],
    stream: true,
    conversation_id: conversationId,
    assistant_message_id: assistantMessageId,
  });
}

/** Gives the body that asks a model server, or a bare relay before it, for an answer. */
export function plainBody(answer: Answer): string {
  const { model, messages, stream } = JSON.parse(chatBody("c", "m", answer));
  return JSON.stringify({ model, messages, stream });
}

/** Gives the text that a client has received, out of the events of a whole response. */
function textReceived(body: Uint8Array): string {
  let text = "";
  for (const line of new TextDecoder().decode(body).split("\n")) {
    if (!line.startsWith("data: {")) continue;
    text += JSON.parse(line.slice("data: ".length)).choices?.[0]?.delta?.content ?? "";
  }
  return text;
}

/** Throws unless a client has received exactly what the model server sent. */
export function assertReceived(body: Uint8Array, answer: Answer): void {
  const [expected, received] = [textOf(answer), textReceived(body)];
  if (received !== expected) {
    throw new Error(differ("A client received another text than was sent", expected, received));
  }
}

/** Throws unless a message is stored with exactly what the model server sent. */
export function assertStored(messages: StoredMessage[], messageId: string, answer: Answer): void {
  const message = messages.find(({ id }) => id === messageId);
  const expected = textOf(answer);
  if (message?.status !== "complete") throw new Error(`A reply is stored as ${message?.status ?? "nothing"}`);
  if (message.content !== expected) {
    throw new Error(differ("A reply is stored with another text than was sent", expected, message.content));
  }
}

function differ(what: string, expected: string, found: string): string {
  let at = 0;
  while (at < expected.length && expected[at] === found[at]) at++;
  return `${what}: ${found.length} characters instead of ${expected.length}, different from ${at} on`;
}
