/**
 * Profiles of image backends. They're stored encrypted, and one of them can be active. Each key is bound to its origin.
 */
import { type BoundKey, normalizeBaseUrl, updateBoundKey } from "../http/base_url.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import { type ProfileRecord, type ProfileWrite, SealedProfiles } from "../storage/documents/sealed_profiles.ts";
import type { Database } from "../storage/database/database.ts";
import { type ExpectedVersion } from "../storage/preconditions.ts";

/** The kinds of image backends: ComfyUI, and A1111 with the servers that share its API. */
export const BACKEND_KINDS = ["a1111", "comfyui"] as const;
/** One kind of image backend. */
export type BackendKind = typeof BACKEND_KINDS[number];

/** Settings of an image. In a profile, they're defaults for requests. */
export interface ImageSettings {
  negativePrompt?: string;
  widthPx?: number;
  heightPx?: number;
  steps?: number;
  cfgScale?: number;
  sampler?: string;
  scheduler?: string;
  seed?: number;
}

/** A profile without its key. */
export interface BackendProfile {
  id: string;
  name: string;
  kind: BackendKind;
  /** From `normalizeBaseUrl`. */
  baseUrl: string;
  checkpoint?: string;
  /** For ComfyUI. Default: the starter workflow. */
  workflowId?: string;
  defaults: ImageSettings;
  hasKey: boolean;
  isActive: boolean;
  createdAtMs: number;
  updatedAtMs: number;
  version: number;
  /** True if the record can't be decrypted. It can only be replaced or deleted. */
  isUnreadable?: boolean;
}

/** Input for a profile. For a stored profile, `undefined` fields don't change and `null` clears a field. */
export interface BackendProfileInput {
  /** Generated if undefined. */
  id?: string;
  name?: string | null;
  /** Required for a new profile, as is `baseUrl`. */
  kind?: BackendKind;
  baseUrl?: string;
  checkpoint?: string | null;
  workflowId?: string | null;
  defaults?: ImageSettings | null;
  /** The stored key only stays if the origin stays the same. */
  apiKey?: string | null;
}

/** The address of a backend and its credentials. */
export interface BackendTarget {
  kind: BackendKind;
  baseUrl: string;
  /** `user:password` for the login of A1111, otherwise a bearer token. */
  apiKey?: string;
}

interface Content {
  name: string;
  kind: BackendKind;
  baseUrl: string;
  checkpoint?: string;
  workflowId?: string;
  defaults: ImageSettings;
  key?: BoundKey;
}

/** The profiles. They're in memory, and a change is visible once it's saved. */
export class BackendProfiles {
  readonly #profiles: SealedProfiles<Content>;

  private constructor(profiles: SealedProfiles<Content>) {
    this.#profiles = profiles;
  }

  /** @param options.sealer For the purpose "images". */
  static async open(options: { db: Database; sealer: PurposeSealer; events: EventHub; log: Log; now?: () => number }) {
    return new BackendProfiles(
      await SealedProfiles.open<Content>({
        ...options,
        kind: "image_connection",
        activeKey: "active_image_connection",
        what: "image backend",
      }),
    );
  }

  /** Lists all profiles, newest first. */
  list(): BackendProfile[] {
    return this.#profiles.list().map((record) => this.#toProfile(record));
  }

  /** @throws {AppError} `not_found`; `conflict` if it is unreadable */
  get(id: string): BackendProfile {
    this.#profiles.getContent(id);
    return this.#toProfile(this.#profiles.get(id));
  }

  /** Returns the active profile. @throws {AppError} `not_available` if there is none */
  getActive(): BackendProfile {
    const { activeId } = this.#profiles;
    if (activeId !== undefined) return this.get(activeId);
    throw new AppError("not_available", "No image backend is active. Add one in Settings > Images");
  }

  /** Creates or replaces a profile. @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`, `conflict` */
  async put(
    input: BackendProfileInput,
    { expectedVersion, isImport, createdAtMs }: Omit<ProfileWrite, "extraStatements"> = {},
  ): Promise<{ profile: BackendProfile; isNew: boolean }> {
    const { record, isNew } = await this.#profiles.put(input.id, (stored) => parseProfile(input, stored), {
      expectedVersion,
      isImport,
      createdAtMs,
    });
    return { profile: this.#toProfile(record), isNew };
  }

  /** Deletes a profile. If it was active, none is active afterwards. @throws {AppError} `not_found`, `revision_mismatch` */
  remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#profiles.remove(id, expectedVersion);
  }

  /** Makes a profile the active one. @throws {AppError} `not_found`, `conflict` */
  async activate(id: string): Promise<BackendProfile> {
    return this.#toProfile(await this.#profiles.activate(id));
  }

  /**
   * Returns the target of a profile, including its key.
   *
   * @throws {AppError} `not_found`; `conflict` if it's unreadable
   */
  getTarget(id: string): BackendTarget {
    return toTarget(this.#profiles.getContent(id));
  }

  /**
   * Returns the target of unsaved input. If it has the ID of a saved profile with the same origin, that profile's key
   * is used.
   */
  getUnsavedTarget(input: BackendProfileInput): BackendTarget {
    const stored = input.id === undefined ? undefined : this.#profiles.find(input.id)?.content;
    return toTarget(parseProfile(input, stored));
  }

  #toProfile({ id, version, createdAtMs, updatedAtMs, content }: ProfileRecord<Content>): BackendProfile {
    const frame = { id, version, createdAtMs, updatedAtMs, isActive: id === this.#profiles.activeId };
    if (content === undefined) {
      const unknown = { name: "Unreadable image backend", kind: "a1111" as const, baseUrl: "", defaults: {} };
      return { ...frame, ...unknown, hasKey: false, isUnreadable: true };
    }
    const { key, ...shown } = content;
    return { ...frame, ...shown, hasKey: key !== undefined };
  }
}

function toTarget({ kind, baseUrl, key }: Content): BackendTarget {
  return { kind, baseUrl, apiKey: key?.value };
}

function parseProfile(input: BackendProfileInput, stored: Content | undefined): Content {
  const { kind = stored?.kind, baseUrl: inputUrl = stored?.baseUrl, defaults = stored?.defaults } = input;
  const { checkpoint = stored?.checkpoint, workflowId = stored?.workflowId } = input;
  if (kind === undefined) throw createMissingError("kind", "the kind is required");
  if (inputUrl === undefined) throw createMissingError("base_url", "the base URL is required");
  const baseUrl = normalizeBaseUrl(inputUrl);
  const set = Object.entries(defaults ?? {}).filter(([, value]) => value !== undefined && value !== null);
  // The default name contains the address, so it changes with the address.
  const hasOwnName = stored !== undefined && stored.name !== new URL(stored.baseUrl).host;
  const { name = hasOwnName ? stored.name : undefined } = input;
  return {
    name: name?.trim() || new URL(baseUrl).host,
    kind,
    baseUrl,
    ...(checkpoint && { checkpoint }),
    ...(workflowId && { workflowId }),
    defaults: Object.fromEntries(set),
    ...updateBoundKey(baseUrl, input.apiKey, stored?.key),
  };
}

function createMissingError(path: string, message: string): AppError {
  return new AppError("invalid_request", `Can't save the image backend: ${message}`, { issues: [{ path, message }] });
}
