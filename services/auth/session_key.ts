/** The key that signs session cookies: `session-key`, 32 random bytes. Deleting the file signs everyone out, even while the server runs. */
import { createKeyFile, isPrivateFile, KEY_BYTES, readKeyFile } from "../crypto/key_file.ts";
import { AppError, messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { type FileState, readFileState } from "../storage/atomic_file.ts";

const WHAT = "session key";

/** The key on disk. */
export interface SessionKey {
  /** The file was missing at the start, so no earlier session is valid. */
  readonly isFresh: boolean;
  /**
   * Returns the key, the same object until it changes. Creates a missing file.
   *
   * @returns `undefined` while the file is something that must not be used: then no session counts.
   */
  read(): Promise<Uint8Array | undefined>;
}

/**
 * Opens the key file, and creates it with mode 0600 if it's missing.
 *
 * @throws {AppError} `internal` if it isn't a private regular file of 32 bytes, or all bytes are zero.
 */
export async function openSessionKey(path: string, log: Log): Promise<SessionKey> {
  const isFresh = !await isPrivateFile(path, WHAT);
  let state: FileState | undefined;
  let key: Uint8Array | undefined;
  let reading: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    if (!await isPrivateFile(path, WHAT)) await createKeyFile(path, WHAT);
    const found = readFileState(path);
    const content = await readKeyFile(path, WHAT);
    if (content === undefined) {
      throw new AppError("internal", `Can't read the ${WHAT} from "${path}": the file disappeared`);
    }
    checkKey(content, path);
    if (key === undefined || !isSame(key, content)) key = new Uint8Array(content);
    state = found;
  }

  await refresh();
  return {
    isFresh,
    async read() {
      const seen = readFileState(path);
      if (seen.id === state?.id && state.isSettled && seen.id !== "absent") return key;
      reading ??= refresh().catch((error) => {
        // Cached, so that an unusable file is reported once and not read for every request.
        if (state?.id !== seen.id) {
          log("error", `${messageOf(error)}; nobody is signed in until it is put right or removed`);
        }
        state = seen;
        key = undefined;
      }).finally(() => reading = undefined);
      await reading;
      return key;
    },
  };
}

function checkKey(content: Uint8Array, path: string): void {
  const fault = content.byteLength !== KEY_BYTES
    ? `it has ${content.byteLength} bytes instead of ${KEY_BYTES}`
    : content.every((byte) => byte === 0)
    ? "it is all zeros"
    : undefined;
  if (fault !== undefined) {
    throw new AppError(
      "internal",
      `Can't use "${path}" as ${WHAT}: ${fault}. Remove the file to create a new key, which signs everyone out`,
    );
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.byteLength === other.byteLength && one.every((byte, i) => byte === other[i]);
}
