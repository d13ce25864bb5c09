/** The owner's presets: stored sealed, beside the one that comes built in; and which of them holds for a chat. */
import { uuidV7 } from "../crypto/random.ts";
import type { DocumentStore, ListedDocument, StoredDocument } from "../storage/documents/document_store.ts";
import { AppError } from "../errors.ts";
import { findJsonFault } from "../json/type_guards.ts";
import { BUILTIN_ID, BUILTIN_NAME, BUILTIN_PRESET } from "./builtin_preset.ts";
import { type Preset, presetFrom } from "./preset.ts";
import type { PresetDocument } from "./preset_document.ts";
import { MAX_PRESET_BYTES, parsePresetFile, toSillyTavern } from "./sillytavern.ts";
import { type ExpectedVersion } from "../storage/preconditions.ts";

/** What is known of a preset without opening it. */
export interface PresetHead {
  name: string;
  /** Models it is for: names, in which `*` stands for any characters. */
  models: string[];
  promptCount: number;
}

/** A preset in a list; without a head where it cannot be opened. */
export type ListedPreset = ListedDocument<PresetHead> & { isBuiltin: boolean };
/** A whole preset. It is shared: not to be changed. */
export type StoredPreset = StoredDocument<PresetHead, PresetDocument> & { isBuiltin: boolean };

/** What an owner enters. What is left out stays as it was. */
export interface PresetInput extends Partial<Pick<PresetHead, "name" | "models">> {
  preset: Partial<PresetDocument>;
}

/** What a chat says of its preset. */
export interface PresetChoice {
  /** The one that is pinned to the conversation. */
  conversationPresetId?: string | null;
  model?: string;
}

/** What presets stand on. */
export interface PresetParts {
  store: DocumentStore<PresetHead, PresetDocument>;
  /** The one in the owner's settings, for whatever no other is for. */
  chosenId(): string | null;
}

const NAMELESS = "Preset";
const EMPTY: PresetDocument = { sampler: {}, prompts: [], prompt_order: [], rest: {}, dialect: "chat_completion" };
const BUILTIN: StoredPreset = {
  ...{ id: BUILTIN_ID, version: 1, createdAtMs: 0, updatedAtMs: 0, isBuiltin: true, body: BUILTIN_PRESET },
  head: { name: BUILTIN_NAME, models: [], promptCount: BUILTIN_PRESET.prompts.length },
};

/** Reads and changes presets. */
export class Presets {
  readonly #parts: PresetParts;

  constructor(parts: PresetParts) {
    this.#parts = parts;
  }

  /** Gives all, the newest first, the built-in one last. */
  list(): ListedPreset[] {
    return [...this.#parts.store.list().map((one) => ({ ...one, isBuiltin: false })), BUILTIN];
  }

  /** @throws {AppError} `not_found`; `internal` when it cannot be opened */
  async get(id: string): Promise<StoredPreset> {
    return id === BUILTIN_ID ? BUILTIN : { ...await this.#parts.store.get(id), isBuiltin: false };
  }

  /**
   * Creates or replaces a preset.
   *
   * @throws {AppError} `too_large`; `revision_mismatch`; `conflict` for the built-in one, and for an id that differs from
   *   another by letter case alone
   */
  async put(id: string, input: PresetInput, expected?: ExpectedVersion): Promise<StoredPreset & { isNew: boolean }> {
    refuseBuiltin(id);
    const fault = findJsonFault(input.preset);
    if (fault !== undefined) throw new AppError("unprocessable", `Cannot save the preset: ${fault}`);
    const saved = await this.#parts.store.put(id, (before) => {
      const body = limited({ ...EMPTY, ...before?.body, ...withoutGaps(input.preset) });
      const head = {
        name: (input.name?.trim() || before?.head.name || NAMELESS).slice(0, 200),
        models: input.models ?? before?.head.models ?? [],
        promptCount: body.prompts.length,
      };
      return { head, body };
    }, expected);
    return { ...saved, isBuiltin: false };
  }

  /** Takes in SillyTavern's file. @param name What to call it where it says no name itself. @throws {AppError} as `put`, and `unprocessable` */
  async import(bytes: Uint8Array, name?: string): Promise<StoredPreset> {
    const parsed = parsePresetFile(bytes);
    return await this.put(uuidV7(), { name: parsed.name ?? name, preset: parsed.preset });
  }

  /** Gives a preset as SillyTavern's file. @throws {AppError} `not_found` */
  async export(id: string): Promise<{ name: string; json: unknown }> {
    const { head, body } = await this.get(id);
    return { name: head.name, json: toSillyTavern(body) };
  }

  /** Moves a preset to the trash. @throws {AppError} `not_found`, `revision_mismatch`; `conflict` for the built-in one */
  async remove(id: string, expected?: ExpectedVersion): Promise<void> {
    refuseBuiltin(id);
    await this.#parts.store.remove(id, expected);
  }

  /**
   * Gives the preset for a chat: the pinned one, else the one that names the model most closely, else the one in the
   * settings, else the built-in one. One that is gone is passed over.
   *
   * @throws {AppError} `internal` when the one that holds cannot be opened: another would silently say something else
   */
  async resolve({ conversationPresetId, model }: PresetChoice): Promise<Preset> {
    const candidates = [conversationPresetId, model && this.#forModel(model), this.#parts.chosenId()];
    for (const id of candidates) {
      if (!id || id === BUILTIN_ID && id !== conversationPresetId) continue;
      const found = id === BUILTIN_ID ? BUILTIN : await this.#parts.store.find(id);
      if (found !== undefined) return inUse({ ...found, isBuiltin: id === BUILTIN_ID });
    }
    return inUse(BUILTIN);
  }

  /** The closest is the pattern with the most characters of its own; of two, the newer. */
  #forModel(model: string): string | undefined {
    let best: { id: string; closeness: number } | undefined;
    for (const { id, head } of this.#parts.store.list()) {
      for (const pattern of head?.models ?? []) {
        const closeness = pattern.replaceAll("*", "").length;
        if (!fits(pattern, model) || closeness <= (best?.closeness ?? -1)) continue;
        best = { id, closeness };
      }
    }
    return best?.id;
  }
}

/** Says whether a name fits a pattern in which `*` stands for any characters; letter case does not count. */
export function fits(pattern: string, name: string): boolean {
  const parts = pattern.toLowerCase().split("*");
  const within = name.toLowerCase();
  if (parts.length === 1) return within === parts[0];
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (!within.startsWith(first) || !within.endsWith(last) || within.length < first.length + last.length) return false;
  // Part by part from the left: no pattern takes longer than the name is long.
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = within.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= within.length - last.length;
}

function limited(preset: PresetDocument): PresetDocument {
  if (new TextEncoder().encode(JSON.stringify(preset)).length > MAX_PRESET_BYTES) {
    throw new AppError("too_large", `The preset is longer than ${MAX_PRESET_BYTES} bytes`);
  }
  return preset;
}

/** Leaves out what is not set: an `undefined` would stand in the way of what is stored. */
function withoutGaps(preset: Partial<PresetDocument>): Partial<PresetDocument> {
  return Object.fromEntries(Object.entries(preset).filter(([, value]) => value !== undefined));
}

function inUse({ id, head, body, isBuiltin }: StoredPreset): Preset {
  return presetFrom({ id, name: head.name, isBuiltin }, body);
}

function refuseBuiltin(id: string): void {
  if (id.toLowerCase() !== BUILTIN_ID) return;
  throw new AppError(
    "conflict",
    `The preset "${BUILTIN_ID}" is built in and cannot be changed; save it under another id`,
  );
}
