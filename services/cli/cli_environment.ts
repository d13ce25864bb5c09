/** Environment of the commands: terminal, stored account, environment variables, options, passphrases. */
import { AppError, getErrorMessage } from "../errors.ts";
import { readFileIfExists, toFileError, writeFileAtomic } from "../storage/atomic_file.ts";
import { CONFIG_ROWS, toFlagName } from "../config/config_keys.ts";
import type { DataLocation } from "../diagnostics/data_checks.ts";

/** Environment of a command. */
export interface CliContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly account: AccountFiles;
  /** Writes a line to standard output. */
  print(text: string): void;
  /** Writes a line to standard error. */
  printNotice(text: string): void;
  /** Returns the next line typed. Never settles after the end of the input. */
  readLine(): Promise<string>;
}

/** @throws {AppError} `invalid_request` when the user has no home folder. */
export function openCliContext(environment: Readonly<Record<string, string | undefined>>): CliContext {
  const home = environment.HOME ?? environment.USERPROFILE;
  if (!home) throw new AppError("invalid_request", "The home folder is unknown. Set HOME");
  return {
    environment,
    account: openAccountFiles(home),
    print: (text) => console.log(text),
    printNotice: (text) => console.error(text),
    readLine: readLine,
  };
}

/** Reads a PEM file that an option names. @throws {AppError} `invalid_request` */
export async function readPem(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (cause) {
    throw new AppError("invalid_request", `Can't read "${path}": ${getErrorMessage(cause)}`, { cause });
  }
}

async function readLine(): Promise<string> {
  const buffer = new Uint8Array(1024);
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const count = await Deno.stdin.read(buffer).catch(() => null);
    if (count === null) return await new Promise(() => {});
    text += decoder.decode(buffer.subarray(0, count), { stream: true });
    const end = text.indexOf("\n");
    if (end >= 0) return text.slice(0, end).trim();
  }
}

/** Server of the token. */
interface AccountInfo {
  /** `"https://chat.example.org"`, no slash at its end. */
  base_url: string;
  token_id: string;
  /** PEM file with the certificate authority of the server, if it isn't a public one. */
  ca_cert?: string;
}

/** A token and its server. */
interface Account extends AccountInfo {
  token: string;
}

/** The two files. */
interface AccountFiles {
  /** Path of the token, for messages. */
  readonly tokenPath: string;
  /** @returns `undefined` before a sign-in. @throws {AppError} `internal` if the files can't be read. */
  load(): Promise<Account | undefined>;
  save(account: Account): Promise<void>;
  forget(): Promise<void>;
}

/** @param home The user's home folder. The path below it is the same on all systems. */
function openAccountFiles(home: string): AccountFiles {
  const folder = `${home}/.config/app`;
  const tokenPath = `${folder}/cli.token`;
  const infoPath = `${folder}/cli.json`;
  return {
    tokenPath,
    async load() {
      const token = await readFileIfExists(tokenPath);
      const info = await readFileIfExists(infoPath);
      if (token === undefined || info === undefined) return undefined;
      return { token: new TextDecoder().decode(token).trim(), ...parseInfo(new TextDecoder().decode(info), infoPath) };
    },
    async save({ token, ...info }) {
      try {
        await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      } catch (cause) {
        throw toFileError(`Can't create the folder "${folder}"`, cause);
      }
      await writeFileAtomic(infoPath, `${JSON.stringify(info, null, 2)}\n`);
      await writeFileAtomic(tokenPath, `${token}\n`);
    },
    async forget() {
      for (const path of [tokenPath, infoPath]) {
        await Deno.remove(path).catch((cause) => {
          if (!(cause instanceof Deno.errors.NotFound)) throw toFileError(`Can't remove "${path}"`, cause);
        });
      }
    },
  };
}

function parseInfo(text: string, path: string): AccountInfo {
  try {
    const { base_url, token_id, ca_cert } = JSON.parse(text);
    if (typeof base_url === "string" && typeof token_id === "string") return { base_url, token_id, ca_cert };
  } catch {
    // Said below.
  }
  throw new AppError("internal", `Can't read "${path}": unexpected content. Run parlor auth login again`);
}

/** Options a command takes: `true` for those with a value. */
type OptionTable = Readonly<Record<string, boolean>>;

/**
 * Reads `--name value`, `--name=value` and `--name`.
 *
 * @returns Values by name without hyphens in front; `"true"` for an option without one.
 * @throws {AppError} `invalid_request` for an unknown option and for a missing value.
 */
export function parseOptions(args: readonly string[], table: OptionTable): Map<string, string> {
  const values = new Map<string, string>();
  for (let i = 0; i < args.length; i++) {
    const [, name = "", inline] = /^--([a-z-]+)(?:=(.*))?$/s.exec(args[i]!) ?? [];
    const takesValue = table[name];
    if (takesValue === undefined) {
      const found = args[i]!.startsWith("-") ? `Unknown option ${args[i]}` : `Unexpected argument "${args[i]}"`;
      throw new AppError("invalid_request", `${found}. See parlor auth --help`);
    }
    const value = takesValue ? inline ?? args[++i] : inline ?? "true";
    if (value === undefined || value === "") {
      throw new AppError("invalid_request", `Bad value for --${name}: no value`);
    }
    values.set(name, value);
  }
  return values;
}

// Shared by the commands on the data folder: their options, and the server's configuration.

/** Parsed arguments of a command. */
interface CommandRequest {
  /** Arguments that aren't options, such as a file. */
  words: string[];
  options: Map<string, string>;
  /** Remaining arguments, for the server's configuration. */
  rest: string[];
}

/** Environment of a command on the data folder. */
export interface DataCommandContext {
  environment: Readonly<Record<string, string | undefined>>;
  version: string;
  /** Reads the server's configuration from the options that are not the command's own. @throws {AppError} */
  readConfig(rest: string[]): DataLocation;
  print(text: string): void;
}

/** A command. Returns its exit code if that isn't 0. @throws {AppError} with a message for the terminal */
export type DataCommand = (args: readonly string[], context: DataCommandContext) => Promise<number | void>;

/**
 * Takes a command's own options, and as many words as it has, out of its arguments.
 *
 * @param own Its options: `true` for those with a value.
 * @param usage Said when the number of words is another one.
 */
export function takeOptions(
  args: readonly string[],
  own: Readonly<Record<string, boolean>>,
  { wordCount, usage }: { wordCount: number; usage: string },
): CommandRequest {
  const ownArgs: string[] = [];
  const words: string[] = [];
  const rest: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    const name = /^--([a-z-]+)/.exec(arg)?.[1];
    const takesNext = !arg.includes("=") && i + 1 < args.length;
    if (name === undefined && words.length < wordCount) words.push(arg);
    else if (name !== undefined && own[name] !== undefined) {
      ownArgs.push(arg, ...(own[name] && takesNext ? [args[++i]!] : []));
    } else rest.push(arg, ...(name !== undefined && takesNext && isValueOf(name, args[i + 1]!) ? [args[++i]!] : []));
  }
  if (words.length < wordCount) throw new AppError("invalid_request", `Usage: ${usage}`);
  return { words, options: parseOptions(ownArgs, own), rest };
}

/** Returns whether the word after an option of the configuration is its value. A switch needs none: the word may be a file. */
function isValueOf(name: string, next: string): boolean {
  const isSwitch = CONFIG_ROWS.some(([key, { type }]) => type === "boolean" && toFlagName(key) === `--${name}`);
  return isSwitch ? /^(true|false|0|1)$/.test(next) : !next.startsWith("--");
}

// Reads passphrases: from a file, the environment or the terminal, never from an argument.

/** Environment variable that holds it. */
export const PASSPHRASE_VARIABLE = "PARLOR_BACKUP_PASSPHRASE";

/** What the question depends on. */
interface PassphraseSource {
  /** Value of `--passphrase-file`. */
  file: string | undefined;
  environment: Readonly<Record<string, string | undefined>>;
  /** Asks for a new passphrase twice, because a typo would make the data unreadable. */
  isNew: boolean;
}

/**
 * Returns the passphrase: the first line of the file or of standard input.
 *
 * @throws {AppError} `invalid_request` when there is none, or the two at the terminal differ.
 */
export async function readPassphrase({ file, environment, isNew }: PassphraseSource): Promise<string> {
  const passphrase = file !== undefined
    ? firstLine(await readFile(file))
    : environment[PASSPHRASE_VARIABLE] || await fromInput(isNew);
  if (passphrase !== "") return passphrase;
  throw new AppError(
    "invalid_request",
    `No passphrase. Use --passphrase-file FILE, ${PASSPHRASE_VARIABLE} or standard input`,
  );
}

async function readFile(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (cause) {
    throw new AppError("invalid_request", `Can't read the passphrase from "${path}": ${getErrorMessage(cause)}`, {
      cause,
    });
  }
}

async function fromInput(isNew: boolean): Promise<string> {
  if (!Deno.stdin.isTerminal()) return firstLine(await new Response(Deno.stdin.readable).text());
  const passphrase = await ask("Passphrase: ");
  if (isNew && await ask("Repeat passphrase: ") !== passphrase) {
    throw new AppError("invalid_request", "The passphrases don't match");
  }
  return passphrase;
}

function firstLine(text: string): string {
  return text.split(/\r?\n/, 1)[0]!;
}

/** Reads a line from the terminal without showing it. */
async function ask(question: string): Promise<string> {
  const write = (text: string) => Deno.stderr.write(new TextEncoder().encode(text));
  await write(question);
  Deno.stdin.setRaw(true);
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(256);
  let line = "";
  try {
    for (;;) {
      const count = await Deno.stdin.read(buffer);
      if (count === null) return line;
      for (const char of decoder.decode(buffer.subarray(0, count), { stream: true })) {
        if (char === "\r" || char === "\n") return line;
        if (char === "\x03") throw new AppError("invalid_request", "Stopped");
        line = char === "\x7f" || char === "\b" ? line.slice(0, -1) : line + char;
      }
    }
  } finally {
    Deno.stdin.setRaw(false);
    await write("\n");
  }
}
