/**
 * The owner's settings, which apply on all devices: an encrypted document, cached in memory. Also the state of the
 * first-run wizard, and flags that are only set once.
 */
import { replaceReferences } from "../attachments/attachment_rows.ts";
import { Mutex } from "../async/locks.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import { type EventHub, RESTORED } from "../events/event_hub.ts";
import type { Database } from "../storage/database/database.ts";
import type { PromptTemplate } from "./prompt_templates.ts";
import { assertExpected, type ExpectedVersion } from "../storage/preconditions.ts";

/** All settings, each with a value. */
export interface OwnerSettings {
  /** Name of the owner, used without a persona. */
  display_name: string;
  default_persona_id: string | null;
  preset_id: string | null;
  /** Whether the model names conversations when it's idle. */
  auto_title: boolean;
  /** Whether the model summarizes messages that no longer fit, when it's idle. */
  auto_summary: boolean;
  /**
   * Whether a reply that a restart has cut, and that its model server hasn't kept, is continued by itself: at servers in
   * private networks, at all, or at none.
   */
  continue_after_restart: "private" | "always" | "never";
  /** Whether the model proposes notes from finished chats when it's idle. */
  memory_proposals: boolean;
  /** Whether the owner was asked about proposals. */
  memory_asked: boolean;
  /** Share of the context for notes, in percent. */
  memory_budget_percent: number;
  /** Minutes after the last message before a chat is read for proposals. */
  memory_idle_minutes: number;
  /** Whether replies are read aloud as they arrive. */
  auto_speak: boolean;
  /** Whether recordings of dictation and voice conversations are stored as attachments of the message. */
  keep_recordings: boolean;
  /** Voice for text outside quotation marks; `null` for the voice of the character. */
  narration_voice: string | null;
  /** Voice for text in quotation marks if the character has no voice; `null` for the configured one. */
  speech_voice: string | null;
  /** Whether Parlor asks once a day for a new version. */
  check_releases: boolean;
  /** The version whose notice the owner dismissed. */
  dismissed_release: string | null;
  /** BCP 47 language of the page; `null` for the browser's. */
  language: string | null;
  theme: "system" | "light" | "dark";
  /** Hue of the accent color in degrees; `null` for the default. */
  accent_hue: number | null;
  /** Font size in percent. */
  font_size: number;
  /** Whether replies use a serif font. */
  serif: boolean;
  /** Whether Enter sends and Shift+Enter inserts a line break; otherwise the other way around. */
  send_on_enter: boolean;
  /** Whether the user's messages are shown as Markdown. */
  user_markdown: boolean;
  /** Whether a single line break is one in chats without a character. In chats with one it always is. */
  line_breaks: "keep" | "markdown";
  /** Whether quoted speech is colored in messages of characters. */
  color_speech: boolean;
  /** Whether emphasized text, which describes actions, is dimmed in messages of characters. */
  dim_actions: boolean;
  /** Size of the portraits next to names in chats. */
  portrait_size: "small" | "medium" | "large";
  /** Whether replies are plain or in bubbles. */
  message_style: "plain" | "bubbles";
  /** Whether expressions (mood images of a card) are shown next to the chat. */
  show_expressions: boolean;
  /** URL path of the background image for chats without one. */
  chat_background: string | null;
  /** Whether lorebook entries, once found, stay in the prompt until the chat is trimmed. */
  keep_found_lore: boolean;
  /** Largest share of the context for all lorebook entries together, in percent. */
  lore_budget_percent: number;
  /** Most tokens of all lorebook entries together; `null` for no further limit. */
  lore_budget_tokens: number | null;
  /** Scans older messages until this many lorebook entries are active. */
  lore_min_activations: number;
  /** Most messages to scan for that; `null` for all. */
  lore_min_activations_depth: number | null;
  /** Most scans of active lorebook entries, one after another; `null` for as many as needed. */
  lore_max_recursion: number | null;
  /** Whether lorebooks also look for keys in the names of those who speak. */
  lore_scans_names: boolean;
  /** Whether entries of characters' lorebooks come before those of lorebooks for all chats. */
  lore_order: "character_first" | "global_first" | "evenly";
  prompt_templates: PromptTemplate[];
}

/** Changes of settings; `null` resets a setting to its default. */
export type SettingsPatch = { [K in keyof OwnerSettings]?: OwnerSettings[K] | null };

/** Default values of all settings. */
export const DEFAULT_SETTINGS: Readonly<OwnerSettings> = Object.freeze({
  display_name: "",
  default_persona_id: null,
  preset_id: null,
  auto_title: true,
  auto_summary: true,
  continue_after_restart: "private",
  memory_proposals: false,
  memory_asked: false,
  memory_budget_percent: 10,
  memory_idle_minutes: 30,
  auto_speak: false,
  keep_recordings: false,
  narration_voice: null,
  speech_voice: null,
  check_releases: false,
  dismissed_release: null,
  language: null,
  theme: "system",
  accent_hue: null,
  font_size: 100,
  serif: false,
  send_on_enter: true,
  user_markdown: false,
  line_breaks: "keep",
  color_speech: true,
  dim_actions: true,
  portrait_size: "small",
  message_style: "plain",
  show_expressions: true,
  chat_background: null,
  keep_found_lore: false,
  lore_budget_percent: 25,
  lore_budget_tokens: null,
  lore_min_activations: 0,
  lore_min_activations_depth: null,
  lore_max_recursion: null,
  lore_scans_names: true,
  lore_order: "character_first",
  prompt_templates: [],
});

/** Returns whether a value is the default of a setting. */
export function isDefault<Key extends keyof OwnerSettings>(key: Key, value: OwnerSettings[Key] | null): boolean {
  return JSON.stringify(value) === JSON.stringify(DEFAULT_SETTINGS[key]);
}

/** The settings and their version, which increases with every change; 0 if nothing was changed yet. */
export interface SettingsState {
  version: number;
  settings: OwnerSettings;
}

/** Key in table `setting`, and ID in change events. */
const KEY = "owner_settings";

/** Reads and changes the settings. */
export class Settings {
  readonly #db: Database;
  readonly #sealer: PurposeSealer;
  readonly #events: EventHub;
  /** Changes from the defaults; `undefined` until read. */
  #known: { version: number; changed: Partial<OwnerSettings> } | undefined;
  readonly #lock = new Mutex();

  /** @param options.sealer For the purpose "settings". */
  constructor({ db, sealer, events }: { db: Database; sealer: PurposeSealer; events: EventHub }) {
    this.#db = db;
    this.#sealer = sealer;
    this.#events = events;
    events.subscribe(({ kind }) => {
      if (kind === RESTORED) this.#known = undefined;
    });
  }

  /** Returns the settings. @throws {AppError} `internal` if the stored settings can't be decrypted */
  get(): SettingsState {
    const { version, changed } = this.#readStored();
    return { version, settings: { ...DEFAULT_SETTINGS, ...changed } };
  }

  /**
   * Changes some settings. Concurrent changes are serialized.
   *
   * @param expectedVersion The required current version.
   * @throws {AppError} `revision_mismatch`
   */
  patch(patch: SettingsPatch, expectedVersion?: ExpectedVersion): Promise<SettingsState> {
    return this.#lock.run(() => this.#write(patch, expectedVersion));
  }

  async #write(patch: SettingsPatch, expectedVersion: ExpectedVersion | undefined): Promise<SettingsState> {
    const before = this.#readStored();
    assertExpected("settings", expectedVersion, before.version);
    const changed = mergeSettings(before.changed, patch);
    if (JSON.stringify(changed) === JSON.stringify(before.changed)) return this.get();
    const version = before.version + 1;
    const sealed = this.#sealer.sealNow(createAad(version), JSON.stringify(changed));
    const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, ?, ?)";
    await this.#db.write([
      { sql, params: [KEY, version, sealed] },
      ...replaceReferences("settings", KEY, JSON.stringify(changed)),
    ]);
    this.#known = { version, changed };
    this.#events.publish({ kind: "settings", id: KEY, revision: version });
    return this.get();
  }

  #readStored(): { version: number; changed: Partial<OwnerSettings> } {
    return this.#known ??= this.#read();
  }

  #read(): { version: number; changed: Partial<OwnerSettings> } {
    const row = this.#db.get<{ version: number; sealed: Uint8Array }>(
      "SELECT version, sealed FROM setting WHERE key = ?",
      KEY,
    );
    if (row === undefined) return { version: 0, changed: {} };
    const text = new TextDecoder().decode(this.#sealer.openNow(createAad(row.version), row.sealed));
    return { version: row.version, changed: JSON.parse(text) };
  }
}

/**
 * Returns the stored changes after a patch. Only changes from the defaults are stored, so that new defaults apply to
 * everyone who never changed the setting.
 */
function mergeSettings(changed: Partial<OwnerSettings>, patch: SettingsPatch): Partial<OwnerSettings> {
  const all: SettingsPatch = { ...changed, ...patch };
  const entries = Object.keys(DEFAULT_SETTINGS).map((key) => [key, all[key as keyof OwnerSettings] ?? null] as const);
  return Object.fromEntries(
    entries.filter(([key, value]) => value !== null && !isDefault(key as keyof OwnerSettings, value)),
  );
}

function createAad(version: number) {
  return { table: "setting", id: KEY, field: "value", version };
}

/** Environment of the search for model servers. The page uses it to explain why a search found nothing. */
export interface SetupEnvironment {
  /** Whether Parlor runs in a container, where 127.0.0.1 is the container instead of the host. */
  isContainer: boolean;
  /** Hosts that the search probes. */
  discoverHosts: readonly string[];
}

/** Files that Docker and Podman create in every container. */
const CONTAINER_MARKERS = ["/.dockerenv", "/run/.containerenv"];

/** State of the first-run wizard. */
export class Setup {
  readonly environment: SetupEnvironment;
  readonly #completed: PersistentFlag;
  readonly #events: EventHub;

  constructor(deps: { completed: PersistentFlag; events: EventHub; environment: SetupEnvironment }) {
    this.environment = deps.environment;
    this.#completed = deps.completed;
    this.#events = deps.events;
  }

  isCompleted(): boolean {
    return this.#completed.isSet();
  }

  /** @throws {AppError} `conflict` if a command-line flag or environment variable sets `setup_completed` to false. */
  async complete(): Promise<void> {
    if (this.#completed.isSet()) return;
    await this.#completed.set();
    this.#events.publish({ kind: "setup", id: "setup_completed" });
  }
}

/** Detects whether Parlor runs in a container. @param markers Files that exist only in containers. */
export async function detectSetupEnvironment(
  discoverHosts: readonly string[],
  markers: readonly string[] = CONTAINER_MARKERS,
): Promise<SetupEnvironment> {
  const found = await Promise.all(markers.map((path) => Deno.stat(path).then(() => true, () => false)));
  return { isContainer: found.includes(true), discoverHosts };
}

/** A flag that is never reset. */
export interface PersistentFlag {
  isSet(): boolean;
  /** @throws {AppError} `conflict` if a command-line flag or environment variable sets the key to false. */
  set(): Promise<void>;
}

/**
 * Opens a flag.
 *
 * @param options.key Config key of the flag.
 * @param options.isSet Value in the configuration.
 * @param options.save Writes the flag to the config file.
 * @param options.sealer For the purpose "settings".
 */
export function openPersistentFlag(options: {
  key: string;
  isSet: boolean;
  save(): Promise<void>;
  db: Database;
  sealer: PurposeSealer;
}): PersistentFlag {
  const { key, db, sealer } = options;
  let isSet = options.isSet || db.get("SELECT 1 FROM setting WHERE key = ?", key) !== undefined;
  return {
    isSet: () => isSet,
    async set() {
      if (isSet) return;
      try {
        await options.save();
      } catch (error) {
        if (error instanceof AppError && error.code === "conflict") throw error;
        const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)";
        const aad = { table: "setting", id: key, field: "value", version: 1 };
        await db.write([{ sql, params: [key, sealer.sealNow(aad, "true")] }]);
      }
      isSet = true;
    },
  };
}
