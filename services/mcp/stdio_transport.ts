/**
 * MCP over the standard input and output of a program: one JSON message per line. The length of a line is limited while
 * it's being received.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
 */
import { Buffer } from "node:buffer";
import { delimiter, isAbsolute, join } from "node:path";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { AppError } from "../errors.ts";
import { asObject } from "../json/type_guards.ts";
import type { Log } from "../log.ts";
import { isFile } from "../process/supervised_process.ts";
import { type PipedEnd, type PipedProcess, startPiped } from "../process/process_group.ts";
import { createFaultResponse, formatMebibytes, maskSecrets } from "./mcp_result.ts";
import { JSONRPCMessageSchema } from "./sdk.ts";
import type { JSONRPCMessage, Transport } from "./sdk.ts";

/** What to run, and its limits. */
export interface StdioOptions {
  /** Name of the server, for errors and the log. */
  name: string;
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  /** The working folder. */
  folder: string;
  log: Log;
  /** Maximum size of a message. */
  maxMessageBytes: number;
  /** Time limit for each step of stopping the program. */
  graceMs: number;
}

/** Number of lines of error output to remember for error messages, and their maximum length. */
const REMEMBERED_LINES = 5;
const MAX_LINE_CHARS = 500;
/** Maximum number of lines of error output to log per second. */
const LOGGED_PER_SECOND = 50;
/** Maximum number of bytes waiting for a program that doesn't read its input. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const NEWLINE = 10;

/** The transport. Its program starts with `start` and is stopped with `close`. */
export class StdioTransport implements Transport {
  onmessage?: (message: JSONRPCMessage) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  /** Why the transport closed without a call of `close`. */
  failure: AppError | undefined;
  readonly #options: StdioOptions;
  readonly #errorLines: string[] = [];
  #process: PipedProcess | undefined;
  #isClosed = false;
  #isReported = false;

  constructor(options: StdioOptions) {
    this.#options = options;
  }

  /** Starts the program. @throws {AppError} `not_available` if it isn't found */
  async start(): Promise<void> {
    const { command, args, env, folder } = this.#options;
    const ownPath = Deno.env.get("PATH") ?? "";
    const program = await findCommand(command, env.PATH ?? ownPath);
    if (program === undefined) {
      throw new AppError("not_available", `Can't start "${command}": the program isn't installed on this machine`);
    }
    await Deno.mkdir(folder, { recursive: true });
    if (this.#isClosed) throw new AppError("not_available", `Stopped "${command}" before it started`);
    const child = startPiped({ program, args, env: { ...createEnv(ownPath), ...env }, folder });
    this.#process = child;
    void this.#readErrors(child);
    void this.#read(child).then(() => child.ended).then((end) => this.#onEnd(end));
  }

  // deno-lint-ignore require-await -- the interface wants a promise
  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#process?.stdin;
    if (this.#isClosed || stdin === undefined || stdin.destroyed) throw this.failure ?? this.#ended();
    if (stdin.writableLength > MAX_WAITING_BYTES) throw this.#fail("it doesn't read its input");
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Fails pending requests immediately. Resolves when the program and its children have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#report();
    await this.#process?.stop(this.#options.graceMs);
  }

  async #read(child: PipedProcess): Promise<void> {
    const { maxMessageBytes } = this.#options;
    let pieces: Uint8Array[] = [];
    let sizeBytes = 0;
    try {
      for await (const chunk of child.stdout as AsyncIterable<Uint8Array>) {
        let rest = chunk;
        for (let at = rest.indexOf(NEWLINE); at !== -1; at = rest.indexOf(NEWLINE)) {
          this.#take(Buffer.concat([...pieces, rest.subarray(0, at)]));
          pieces = [];
          sizeBytes = 0;
          rest = rest.subarray(at + 1);
          await yieldIfTickUsedUp();
        }
        sizeBytes += rest.length;
        if (sizeBytes > maxMessageBytes) {
          this.#fail(`it sent a message of more than ${formatMebibytes(maxMessageBytes)}`);
          return;
        }
        if (rest.length > 0) pieces.push(rest);
      }
    } catch {
      // The pipe broke when the program ended.
    }
  }

  /**
   * Passes one line on. Text that isn't a message is dropped, because some programs print notes to the wrong stream.
   */
  #take(line: Uint8Array): void {
    if (this.#isClosed || line.length === 0) return;
    const text = new TextDecoder().decode(line).trim();
    if (text === "") return;
    const message = parseMessage(text);
    if (message !== undefined) return this.onmessage?.(message);
    this.#remember(text);
    this.#options.log("debug", "A tool server printed a line that isn't a message", { server: this.#options.name });
  }

  async #readErrors(child: PipedProcess): Promise<void> {
    const { log, name } = this.#options;
    const decoder = new TextDecoder();
    let rest = "";
    let second = 0;
    let logged = 0;
    const take = (line: string) => {
      const text = this.#remember(line);
      const now = Math.floor(Date.now() / 1000);
      if (now !== second) [second, logged] = [now, 0];
      if (text !== "" && logged++ < LOGGED_PER_SECOND) {
        log("debug", "Error output of a tool server", { server: name, text });
      }
    };
    try {
      for await (const chunk of child.stderr as AsyncIterable<Uint8Array>) {
        const parts = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/);
        rest = parts.pop()!.slice(0, MAX_LINE_CHARS);
        parts.forEach(take);
        await yieldIfTickUsedUp();
      }
    } catch {
      // The pipe broke when the program ended.
    }
    take(rest);
  }

  /** Remembers a line of error output. @returns The line with secrets masked. */
  #remember(line: string): string {
    // deno-lint-ignore no-control-regex -- terminal colors and the like
    const plain = line.slice(0, MAX_LINE_CHARS).replace(/\x1b\[[0-9;]*m|[\x00-\x08\x0b-\x1f\x7f]/g, "").trim();
    if (plain === "") return "";
    const text = maskSecrets(plain, Object.values(this.#options.env));
    this.#errorLines.push(text);
    if (this.#errorLines.length > REMEMBERED_LINES) this.#errorLines.shift();
    return text;
  }

  #onEnd(end: PipedEnd): void {
    if (!this.#isClosed) this.failure ??= this.#ended(end);
    this.#isClosed = true;
    this.#report();
  }

  #ended({ code, signal, error }: PipedEnd = { code: null, signal: null }): AppError {
    const { name, command } = this.#options;
    const how = error !== undefined
      ? `it can't be started`
      : signal !== null
      ? `it was ended by ${signal}`
      : code !== null
      ? `it ended with code ${code}`
      : "it ended";
    const printed = this.#errorLines.length === 0 ? "" : `. It printed: ${this.#errorLines.join(" | ")}`;
    return new AppError("upstream_error", `The tool server "${name}" ("${command}") stopped: ${how}${printed}`);
  }

  /** Stops the program, because it exceeded a limit. */
  #fail(why: string): AppError {
    const failure = this.failure ??= new AppError(
      "upstream_error",
      `Stopped the tool server "${this.#options.name}": ${why}`,
    );
    void this.close();
    return failure;
  }

  #report(): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.onclose?.();
  }
}

/** Parses a line. An invalid response becomes an error of its request, so that the request doesn't wait. */
function parseMessage(line: string): JSONRPCMessage | undefined {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return undefined;
  }
  const message = JSONRPCMessageSchema.safeParse(json);
  if (message.success) return message.data;
  const { id, method } = asObject(json);
  const isResponse = method === undefined && (typeof id === "string" || typeof id === "number");
  return isResponse ? createFaultResponse(id, "its response isn't valid MCP") : undefined;
}

/**
 * The environment variables that every program gets: PATH, because launchers such as npx start other programs, and the
 * variables that Windows requires.
 */
function createEnv(path: string): Record<string, string> {
  const names = Deno.build.os === "windows" ? ["SystemRoot", "PATHEXT", "ComSpec"] : [];
  const found = names.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return { PATH: path, ...Object.fromEntries(found) };
}

async function findCommand(command: string, path: string): Promise<string | undefined> {
  const endings = Deno.build.os === "windows" ? ["", ".exe", ".cmd", ".bat"] : [""];
  const folders = isAbsolute(command) || /[/\\]/.test(command)
    ? [""]
    : path.split(delimiter).filter((one) => one !== "");
  for (const folder of folders) {
    for (const ending of endings) {
      const candidate = folder === "" ? `${command}${ending}` : join(folder, `${command}${ending}`);
      if (await isFile(candidate)) return candidate;
    }
  }
  return undefined;
}
