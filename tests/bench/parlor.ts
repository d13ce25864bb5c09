/** Parlor as a process with the permissions of the start task and its own folder. */
import { startPermissions } from "../../build.ts";
import type { Program, Programs } from "./child.ts";
import { HttpConnection } from "./http_connection.ts";
import { type Answer, modelOf, textOf } from "./upstream_chunks.ts";

const ROOT = new URL("../../", import.meta.url);
const SETTLED_WITHIN_MS = 60_000;
const POLL_MS = 5;

/** Options to start Parlor. */
export interface ParlorOptions {
  programs: Programs;
  dataDir: string;
  /** The compiled executable; by default, Parlor runs from source. */
  executable?: string;
  /** Flags besides those for port and folder. */
  args?: string[];
}

/** A message of a benchmark. */
export interface StoredMessage {
  id: string;
  role: string;
  content: string;
  status: string;
}

/** A running Parlor. */
export class Parlor {
  readonly program: Program;
  /** Client for unmeasured requests, one after another. */
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

  /** Uses this model server for all replies, and turns off titles, which would call it again. */
  async useUpstream(port: number): Promise<void> {
    await this.control.json("PATCH", "/api/settings", { auto_title: false });
    const connection = { id: "bench", name: "Bench", kind: "openai", base_url: `http://127.0.0.1:${port}/v1` };
    const { id } = await this.control.json<{ id: string }>("PUT", "/api/connections", connection);
    await this.control.json("POST", `/api/connections/${id}/activate`, {});
    // A title generated between rounds would call the model again.
    await this.control.json("PATCH", "/api/settings", { auto_title: false });
  }

  /** Returns the stored messages of a conversation. */
  async messages(conversationId: string): Promise<StoredMessage[]> {
    const path = `/api/conversations/${conversationId}`;
    return (await this.control.json<{ messages: StoredMessage[] }>("GET", path)).messages;
  }

  /** Waits until all replies are saved. */
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

/** Returns the command line that starts Parlor on a free port. */
export async function parlorCommand(
  { dataDir, executable, args = [] }: Omit<ParlorOptions, "programs">,
): Promise<{ command: string; args: string[] }> {
  const own = ["--data-dir", dataDir, "--port", "0", ...args];
  if (executable !== undefined) return { command: executable, args: own };
  const main = new URL("main.ts", ROOT).pathname;
  return { command: Deno.execPath(), args: ["run", ...await startPermissions(), main, ...own] };
}

/** Returns the body of a chat request in a conversation. */
export function chatBody(conversationId: string, assistantMessageId: string, answer: Answer): string {
  return JSON.stringify({
    model: modelOf(answer),
    messages: [{ role: "user", content: "Tell me how the light falls into the harbour in the evening." }],
    stream: true,
    conversation_id: conversationId,
    assistant_message_id: assistantMessageId,
  });
}

/** Returns the body of a chat request to a model server or a bare relay. */
export function plainBody(answer: Answer): string {
  const { model, messages, stream } = JSON.parse(chatBody("c", "m", answer));
  return JSON.stringify({ model, messages, stream });
}

/** Returns the text in the events of a complete response. */
function textReceived(body: Uint8Array): string {
  let text = "";
  for (const line of new TextDecoder().decode(body).split("\n")) {
    if (!line.startsWith("data: {")) continue;
    text += JSON.parse(line.slice("data: ".length)).choices?.[0]?.delta?.content ?? "";
  }
  return text;
}

/** Throws unless a client has received exactly the text that the model server sent. */
export function assertReceived(body: Uint8Array, answer: Answer): void {
  const [expected, received] = [textOf(answer), textReceived(body)];
  if (received !== expected) {
    throw new Error(differ("A client received another text than was sent", expected, received));
  }
}

/** Throws unless the stored message has exactly the text that the model server sent. */
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
