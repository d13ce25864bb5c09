/** Writes single keys of `<datadir>/config.toml`, keeping everything else in it as the owner wrote it. */
import { parse as parseToml } from "smol-toml";
import { AppError } from "../errors.ts";
import { type ConfigKeyName, toFlagName } from "./config_keys.ts";
import { toToml } from "./config_help.ts";
import type { Config } from "./config.ts";
import { KeyedMutex } from "../async/keyed_mutex.ts";
import { readFileIfExists, writeFileAtomic } from "../storage/atomic_file.ts";

/** By path, so that concurrent writes of different keys aren't lost. */
const writes = new KeyedMutex();

/** Returns a config.toml text in which `key` has the value; comments and order stay. */
export function withKey(text: string, key: string, value: boolean | string | number): string {
  const line = `${key} = ${toToml(value)}`;
  const pattern = new RegExp(`^([ \\t]*)${key}[ \\t]*=[ \\t]*(?:"[^"\\n]*"|[^#\\n]*?)([ \\t]*(?:#[^\\n]*)?)$`, "m");
  if (pattern.test(text)) {
    return text.replace(pattern, (_, indent: string, comment: string) => `${indent}${line}${comment}`);
  }
  return text === "" || text.endsWith("\n") ? `${text}${line}\n` : `${text}\n${line}\n`;
}

/**
 * Saves one key.
 *
 * @throws {AppError} `conflict` if a flag or the environment sets the key, so that the file would have no effect.
 */
export async function saveConfigKey(
  config: Config,
  key: ConfigKeyName,
  value: boolean | string | number,
): Promise<void> {
  const source = config.sources[key];
  if (source === "flag" || source === "environment") {
    throw new AppError(
      "conflict",
      `Can't change ${key}: it's set by ${source === "flag" ? toFlagName(key) : "the environment"}`,
    );
  }
  const path = `${config.dataDir}/config.toml`;
  await writes.run(path, async () => {
    const bytes = await readFileIfExists(path);
    const text = withKey(bytes === undefined ? "" : new TextDecoder().decode(bytes), key, value);
    if (parseToml(text)[key] !== value) {
      throw new AppError("internal", `Can't save ${key} in "${path}": unexpected file format`);
    }
    await writeFileAtomic(path, text);
  });
}
