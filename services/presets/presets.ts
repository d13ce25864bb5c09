/** Stored presets and the built-in one, and which of them applies to a chat. */
import { Buffer } from "node:buffer";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { writeJsonIncrementally } from "../json/incremental_write.ts";
import { MAX_PARSED_BYTES, type UnparsedJson } from "../json/json_body.ts";
import { asString, findJsonFault } from "../json/type_guards.ts";
import { createDocumentKind, readBodyInChild, readInChild } from "../platform/sandbox/document_job.ts";
import type { Sandbox } from "../platform/sandbox/sandbox.ts";
import {
  DocumentStore,
  type DocumentStoreOptions,
  type ListedDocument,
  type OpenedDocument,
} from "../storage/documents/document_store.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import {
  BUILTIN_PRESET,
  BUILTIN_PRESET_ID,
  BUILTIN_PRESET_NAME,
  type Preset,
  type PresetDocument,
  readPreset,
} from "./preset.ts";
import {
  createTooLargeError,
  MAX_PRESET_BYTES,
  parsePresetFile,
  parseReadPreset,
  toSillyTavernPreset,
} from "./sillytavern.ts";

/** The part of a preset that is available without decrypting it. */
interface PresetHead {
  name: string;
  /** Names of the models it applies to; `*` matches any characters. */
  models: string[];
  promptCount: number;
}

/** A preset in a list; without a head if it can't be decrypted. */
export type ListedPreset = ListedDocument<PresetHead> & { isBuiltin: boolean };
/** A stored preset. Shared: don't modify it. */
export type StoredPreset = OpenedDocument<PresetHead, PresetDocument> & { isBuiltin: boolean };

/** Values to store. Omitted fields don't change. */
export interface PresetInput extends Partial<Pick<PresetHead, "name" | "models">> {
  preset: Partial<PresetDocument>;
  /** When a new preset was created; the default is now. */
  createdAtMs?: number;
}

/** Criteria for choosing a preset. */
export interface PresetChoice {
  /** The preset pinned to the conversation. */
  conversationPresetId?: string | null;
  model?: string;
}

/** Dependencies of `Presets`. */
export interface PresetDeps {
  store: DocumentStore<PresetHead, PresetDocument>;
  /** Reads large files. */
  sandbox: Sandbox;
  /** Returns the preset in the settings, which is used if no other applies. */
  getChosenId(): string | null;
}

const DEFAULT_NAME = "Preset";
const FILE_KIND = createDocumentKind(new URL("./preset_child.ts", import.meta.url));
const EMPTY: PresetDocument = { sampler: {}, prompts: [], prompt_order: [], rest: {}, dialect: "chat_completion" };
const BUILTIN: StoredPreset = {
  id: BUILTIN_PRESET_ID,
  version: 1,
  createdAtMs: 0,
  updatedAtMs: 0,
  isBuiltin: true,
  body: BUILTIN_PRESET,
  head: { name: BUILTIN_PRESET_NAME, models: [], promptCount: BUILTIN_PRESET.prompts.length },
};

/** Stores and chooses presets. */
export class Presets {
  readonly #deps: PresetDeps;

  constructor(deps: PresetDeps) {
    this.#deps = deps;
  }

  /** Lists all presets, newest first, the built-in one last. */
  list(): ListedPreset[] {
    return [...this.#deps.store.list().map((one) => ({ ...one, isBuiltin: false })), BUILTIN];
  }

  /** @throws {AppError} `not_found`; `internal` if it can't be decrypted */
  async get(id: string): Promise<StoredPreset> {
    return id === BUILTIN_PRESET_ID ? BUILTIN : { ...await this.#deps.store.get(id), isBuiltin: false };
  }

  /**
   * Creates or replaces a preset.
   *
   * @throws {AppError} `too_large`; `invalid_request` for an extra body that sets the model, the messages or the stream;
   *   `revision_mismatch`; `conflict` for the built-in one, and for an id that differs
   *   from another only in case
   */
  async put(id: string, input: PresetInput, expected?: ExpectedVersion): Promise<StoredPreset & { isNew: boolean }> {
    refuseBuiltin(id);
    const fault = findJsonFault(input.preset);
    if (fault !== undefined) throw new AppError("unprocessable", `Can't save the preset: ${fault}`);
    const saved = await this.#deps.store.put(id, async (before) => {
      const body = { ...EMPTY, ...before?.body, ...omitUndefined(input.preset) };
      const text = await writeJsonIncrementally(body);
      if (Buffer.byteLength(text) > MAX_PRESET_BYTES) throw createTooLargeError();
      const head = {
        name: (input.name?.trim() || before?.head.name || DEFAULT_NAME).slice(0, 200),
        models: input.models ?? before?.head.models ?? [],
        promptCount: body.prompts.length,
      };
      return { head, body, text, createdAtMs: input.createdAtMs };
    }, expected);
    return { ...saved, isBuiltin: false };
  }

  /**
   * Reads the long body of a request to save a preset.
   *
   * @param check Checks the body.
   * @throws {AppError} `invalid_json`, `invalid_request`, `unprocessable`, `too_large`
   */
  async readBody(body: UnparsedJson, check: (body: unknown) => PresetInput): Promise<PresetInput> {
    const of = { kind: FILE_KIND, order: "body", noun: KIND };
    return (await readBodyInChild(this.#deps.sandbox, of, body, check)).checked;
  }

  /**
   * Imports a SillyTavern file. @param name Used if the file has no name. @throws {AppError} like `put`, and
   * `unprocessable`
   */
  async import(bytes: Uint8Array, name?: string): Promise<StoredPreset> {
    const parsed = await this.#read(bytes);
    return await this.put(createUuidV7(), { name: parsed.name ?? name, preset: parsed.preset });
  }

  async #read(bytes: Uint8Array): Promise<{ preset: PresetDocument; name?: string }> {
    if (bytes.length <= MAX_PARSED_BYTES || bytes.length > MAX_PRESET_BYTES) return parsePresetFile(bytes);
    const { document, value } = await readInChild(this.#deps.sandbox, FILE_KIND, bytes, "preset");
    return { preset: parseReadPreset(document), name: asString(value.name) };
  }

  /** Exports a preset as a SillyTavern file. @throws {AppError} `not_found` */
  async export(id: string): Promise<{ name: string; json: unknown }> {
    const { head, body } = await this.get(id);
    return { name: head.name, json: toSillyTavernPreset(body) };
  }

  /**
   * Moves a preset to the trash. @throws {AppError} `not_found`, `revision_mismatch`; `conflict` for the built-in one
   */
  async remove(id: string, expected?: ExpectedVersion): Promise<void> {
    refuseBuiltin(id);
    await this.#deps.store.remove(id, expected);
  }

  /**
   * Returns the preset for a chat: the pinned one, else the best match for the model, else the one in the settings,
   * else the built-in one. Deleted presets are skipped.
   *
   * @throws {AppError} `internal` if the chosen preset can't be decrypted, because another one would silently change
   *   the prompt
   */
  async resolve({ conversationPresetId, model }: PresetChoice): Promise<Preset> {
    const candidates = [conversationPresetId, model && this.#chooseForModel(model), this.#deps.getChosenId()];
    for (const id of candidates) {
      if (!id || id === BUILTIN_PRESET_ID && id !== conversationPresetId) continue;
      const found = id === BUILTIN_PRESET_ID ? BUILTIN : await this.#deps.store.find(id);
      if (found !== undefined) return toPreset({ ...found, isBuiltin: id === BUILTIN_PRESET_ID });
    }
    return toPreset(BUILTIN);
  }

  /** Finds the best match for a model: the one with the most literal characters, or the newest of several. */
  #chooseForModel(model: string): string | undefined {
    let best: { id: string; closeness: number } | undefined;
    for (const { id, head } of this.#deps.store.list()) {
      for (const pattern of head?.models ?? []) {
        const closeness = pattern.replaceAll("*", "").length;
        if (!matchesModel(pattern, model) || closeness <= (best?.closeness ?? -1)) continue;
        best = { id, closeness };
      }
    }
    return best?.id;
  }
}

/** Matches a model name against a pattern in which `*` matches any characters. Ignores case. */
export function matchesModel(pattern: string, name: string): boolean {
  const parts = pattern.toLowerCase().split("*");
  const within = name.toLowerCase();
  if (parts.length === 1) return within === parts[0];
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (!within.startsWith(first) || !within.endsWith(last) || within.length < first.length + last.length) return false;
  // Matches part by part from the left, in linear time.
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = within.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= within.length - last.length;
}

/** Removes undefined fields, which would overwrite stored values. */
function omitUndefined(preset: Partial<PresetDocument>): Partial<PresetDocument> {
  return Object.fromEntries(Object.entries(preset).filter(([, value]) => value !== undefined));
}

function toPreset({ id, head, body, isBuiltin }: StoredPreset): Preset {
  return readPreset({ id, name: head.name, isBuiltin }, body);
}

function refuseBuiltin(id: string): void {
  if (id.toLowerCase() !== BUILTIN_PRESET_ID) return;
  throw new AppError(
    "conflict",
    `The preset "${BUILTIN_PRESET_ID}" is built in and can't be changed. Save it under another ID`,
  );
}

const KIND = "preset";

/** Opens the preset store. @param options.getChosenId Returns the preset id of the settings. */
export function openPresets(
  options: Omit<DocumentStoreOptions<PresetHead>, "kind" | "noun" | "getTitle" | "trash"> & {
    trash: DocumentStoreOptions<PresetHead>["trash"] & {
      register(kind: string, handler: Pick<DocumentStore<PresetHead, PresetDocument>, "restore" | "purge">): void;
    };
    getChosenId(): string | null;
    sandbox: Sandbox;
  },
): Presets {
  const { getChosenId, sandbox, ...rest } = options;
  const store = new DocumentStore<PresetHead, PresetDocument>({
    ...rest,
    kind: KIND,
    noun: KIND,
    getTitle: ({ name }) => name,
  });
  options.trash.register(KIND, store);
  return new Presets({ store, sandbox, getChosenId });
}
