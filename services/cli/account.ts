/** Stores the token of the command line in `cli.token`, and its server in `cli.json`. */
import { AppError } from "../errors.ts";
import { fileError, readFileIfExists, writeFileAtomic } from "../storage/atomic_file.ts";

/** Which server the token belongs to. */
export interface AccountInfo {
  /** `"https://chat.example.org"`, no slash at its end. */
  base_url: string;
  token_id: string;
  /** PEM file with the certificate authority of the server, if it isn't a public one. */
  ca_cert?: string;
}

/** A token and its server. */
export interface Account extends AccountInfo {
  token: string;
}

/** The two files. */
export interface AccountFiles {
  /** Path of the token, for messages. */
  readonly tokenPath: string;
  /** @returns `undefined` when nobody signed in. @throws {AppError} `internal` when the files cannot be read. */
  load(): Promise<Account | undefined>;
  save(account: Account): Promise<void>;
  forget(): Promise<void>;
}

/** @param home The user's home folder. The path below it is the same on all systems. */
export function accountFiles(home: string): AccountFiles {
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
