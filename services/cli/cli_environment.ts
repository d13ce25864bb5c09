/** Environment of the `parlor auth` commands: terminal, home folder, environment variables. */
import { AppError, messageOf } from "../errors.ts";
import { type AccountFiles, accountFiles } from "./account.ts";

/** Environment of a command. */
export interface CliOutside {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly account: AccountFiles;
  /** Writes a line to standard output. */
  print(text: string): void;
  /** Writes a line to standard error. */
  tell(text: string): void;
  /** Returns the next line typed. Never settles after the end of the input. */
  readLine(): Promise<string>;
}

/** @throws {AppError} `invalid_request` when the user has no home folder. */
export function openOutside(environment: Readonly<Record<string, string | undefined>>): CliOutside {
  const home = environment.HOME ?? environment.USERPROFILE;
  if (!home) throw new AppError("invalid_request", "The home folder is unknown. Set HOME");
  return {
    environment,
    account: accountFiles(home),
    print: (text) => console.log(text),
    tell: (text) => console.error(text),
    readLine: readLine,
  };
}

/** Reads a PEM file that an option names. @throws {AppError} `invalid_request` */
export async function readPem(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (cause) {
    throw new AppError("invalid_request", `Can't read "${path}": ${messageOf(cause)}`, { cause });
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
