/** Environment of the `parlor auth` commands: terminal, stored account, environment variables, options. */
import { AppError, messageOf } from "../errors.ts";
import { fileError, readFileIfExists, writeFileAtomic } from "../storage/atomic_file.ts";

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
    account: openAccountFiles(home),
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
        throw fileError(`Can't create the folder "${folder}"`, cause);
      }
      await writeFileAtomic(infoPath, `${JSON.stringify(info, null, 2)}\n`);
      await writeFileAtomic(tokenPath, `${token}\n`);
    },
    async forget() {
      for (const path of [tokenPath, infoPath]) {
        await Deno.remove(path).catch((cause) => {
          if (!(cause instanceof Deno.errors.NotFound)) throw fileError(`Can't remove "${path}"`, cause);
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
      const found = args[i]!.startsWith("-") ? `Unknown option ${args[i]}` : `"${args[i]}" belongs to no option`;
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
