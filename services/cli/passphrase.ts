/** Reads passphrases: from a file, the environment or the terminal, never from an argument. */
import { AppError, messageOf } from "../errors.ts";

/** Environment variable that holds it. */
export const PASSPHRASE_VARIABLE = "PARLOR_BACKUP_PASSPHRASE";

/** What the question depends on. */
export interface PassphraseSource {
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
    throw new AppError("invalid_request", `Can't read the passphrase from "${path}": ${messageOf(cause)}`, { cause });
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
