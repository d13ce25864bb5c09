/**
 * Settings of a backup's config.toml. A backup from someone else must not decide what runs on this machine, where the
 * server listens or who may sign in: such keys are left out unless the owner accepts them one by one.
 */
import { parse as parseToml, stringify as stringifyToml } from "smol-toml";
import { CONFIG_KEYS, type ConfigKeyName } from "../config/config_keys.ts";
import { AppError } from "../errors.ts";

/** Keys that a backup brings along. All others are left out, new ones too. */
const HARMLESS_KEYS: readonly ConfigKeyName[] = [
  "builtin_app_installed",
  "setup_completed",
  "log_requests",
  "log_level",
  "upstream_connect_timeout_ms",
  "upstream_first_byte_timeout_ms",
  "upstream_idle_timeout_ms",
  "max_body_bytes",
  "max_chat_body_bytes",
  "max_conversation_body_bytes",
  "max_upload_body_bytes",
  "max_document_body_bytes",
  "max_voice_body_bytes",
  "max_import_body_bytes",
  "backup_schedule",
  "backup_dir_must_be_mount",
  "backup_keep",
];

/** A key of a backup that needs the owner's consent. */
export interface RestoredSetting {
  key: string;
  /** As in config.toml, on one line. */
  line: string;
  isAccepted: boolean;
}

/**
 * Returns the config.toml of a restored data folder, and the keys of the backup that needed consent.
 *
 * @param options.backup The backup's config.toml.
 * @param options.present The data folder's config.toml until now: a key that has the same value there brings nothing new,
 *   and one that is left out keeps its value from there.
 * @param options.accept Decides about a key.
 */
export async function createRestoredConfig(
  { backup, present, accept }: {
    backup: string;
    present: string | undefined;
    accept(setting: Omit<RestoredSetting, "isAccepted">): boolean | Promise<boolean>;
  },
): Promise<{ text: string; settings: RestoredSetting[] }> {
  const own = present === undefined ? {} : parse(present);
  if (own === undefined) throw new AppError("unprocessable", "Can't read the data folder's config.toml");
  const found = parse(backup);
  if (found === undefined) {
    // The server wouldn't start with it.
    return { text: "", settings: [{ key: "config.toml", line: "it can't be read", isAccepted: false }] };
  }
  const settings: RestoredSetting[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(found)) {
    const isHarmless = (HARMLESS_KEYS as string[]).includes(key) || isSame(value, own[key]);
    const setting = { key, line: formatLine(key, value) };
    const isAccepted = isHarmless || (Object.hasOwn(CONFIG_KEYS, key) && await accept(setting));
    if (!isHarmless) settings.push({ ...setting, isAccepted });
    if (isAccepted) values[key] = value;
  }
  const isNeeded = (key: string) => !Object.hasOwn(values, key) && !(HARMLESS_KEYS as string[]).includes(key);
  const kept = Object.entries(own).filter(([key]) => isNeeded(key));
  if (settings.every(({ isAccepted }) => isAccepted) && kept.length === 0) return { text: backup, settings };
  const leftOut = settings.filter(({ isAccepted }) => !isAccepted).map(({ line }) => `# ${line}\n`);
  const note = leftOut.length === 0 ? "" : `# Left out when a backup was restored:\n${leftOut.join("")}`;
  return { text: note + stringifyToml({ ...values, ...Object.fromEntries(kept) }), settings };
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    return parseToml(text);
  } catch {
    return undefined;
  }
}

function isSame(one: unknown, other: unknown): boolean {
  return other !== undefined && stringifyToml({ one }) === stringifyToml({ one: other });
}

/** Formats a key on one line that is safe for a terminal: invisible and reordering characters are escaped. */
function formatLine(key: string, value: unknown): string {
  const json = JSON.stringify(value, (_, part) => typeof part === "bigint" ? Number(part) : part);
  const escape = (text: string) =>
    text.replace(
      /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
      (character) => `\\U${character.codePointAt(0)!.toString(16).toUpperCase().padStart(8, "0")}`,
    );
  return `${escape(key)} = ${escape(json ?? "")}`;
}
