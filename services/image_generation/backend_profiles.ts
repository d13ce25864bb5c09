/** Profiles of image backends: stored sealed, one of them active, each key bound to its origin. */
import { type BoundKey, keyAfter } from "../http/api_key.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { normaliseBaseUrl } from "../http/base_url.ts";
import { type ProfileRecord, SealedProfiles } from "../storage/documents/sealed_profiles.ts";
import type { Database } from "../storage/database/database.ts";
import { type ExpectedVersion } from "../storage/preconditions.ts";

/** The kinds of image backends: A1111's API and those who speak it, and ComfyUI. */
export const BACKEND_KINDS = ["a1111", "comfyui"] as const;
/** One of them. */
export type BackendKind = typeof BACKEND_KINDS[number];

/** How pictures are drawn where a request says nothing. */
export interface DrawDefaults {
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
export interface ImageProfile {
  id: string;
  name: string;
  kind: BackendKind;
  /** As normaliseBaseUrl leaves it. */
  baseUrl: string;
  checkpoint?: string;
  /** For ComfyUI; the starter workflow where there is none. */
  workflowId?: string;
  defaults: DrawDefaults;
  hasKey: boolean;
  isActive: boolean;
  createdAtMs: number;
  updatedAtMs: number;
  version: number;
  /** True when the record cannot be opened: it can only be replaced or removed. */
  isUnreadable?: boolean;
}

/** What an owner enters. Of a stored profile that has the same id, what is left out stays and `null` clears. */
export interface ImageProfileInput {
  /** Made by the server when left out. */
  id?: string;
  name?: string | null;
  /** Needed for a new one, as is `baseUrl`. */
  kind?: BackendKind;
  baseUrl?: string;
  checkpoint?: string | null;
  workflowId?: string | null;
  defaults?: DrawDefaults | null;
  /** The stored key stays only as long as the origin does. */
  apiKey?: string | null;
}

/** Where a backend is and how to be let in. */
export interface BackendTarget {
  kind: BackendKind;
  baseUrl: string;
  /** `user:password` for A1111's own login, else a bearer token. */
  apiKey?: string;
}

interface Content {
  name: string;
  kind: BackendKind;
  baseUrl: string;
  checkpoint?: string;
  workflowId?: string;
  defaults: DrawDefaults;
  key?: BoundKey;
}

/** Reads and changes the profiles. */
export class ImageProfiles {
  readonly #profiles: SealedProfiles<Content>;

  private constructor(profiles: SealedProfiles<Content>) {
    this.#profiles = profiles;
  }

  /** @param options.sealer For the purpose "images". */
  static async open(options: { db: Database; sealer: PurposeSealer; events: EventHub; now?: () => number }) {
    return new ImageProfiles(
      await SealedProfiles.open<Content>({
        ...options,
        ...{ kind: "image_connection", activeKey: "active_image_connection", what: "image backend" },
      }),
    );
  }

  /** Gives all profiles, the newest first. */
  list(): ImageProfile[] {
    return this.#profiles.list().map((record) => this.#shown(record));
  }

  /** @throws {AppError} `not_found`, `conflict` when it cannot be read */
  get(id: string): ImageProfile {
    this.#profiles.content(id);
    return this.#shown(this.#profiles.get(id));
  }

  /** Gives the profile to draw with. @throws {AppError} `not_available` when none is active */
  active(): ImageProfile {
    const { activeId } = this.#profiles;
    if (activeId !== undefined) return this.get(activeId);
    throw new AppError("not_available", "No image backend is active; add one under Settings, Images");
  }

  /** Creates or replaces a profile. @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`, `conflict` */
  async put(
    input: ImageProfileInput,
    expectedVersion?: ExpectedVersion,
  ): Promise<{ profile: ImageProfile; isNew: boolean }> {
    const { record, isNew } = await this.#profiles.put(input.id, (before) => contentFrom(input, before), {
      expectedVersion,
    });
    return { profile: this.#shown(record), isNew };
  }

  /** Removes a profile. When it was active, none is. @throws {AppError} `not_found`, `revision_mismatch` */
  remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#profiles.remove(id, expectedVersion);
  }

  /** Makes a profile the active one. @throws {AppError} `not_found`, `conflict` */
  async activate(id: string): Promise<ImageProfile> {
    return this.#shown(await this.#profiles.activate(id));
  }

  /** Gives what a call needs, the key included. @throws {AppError} `not_found`, `conflict` */
  targetFor(id: string): BackendTarget {
    return targetOf(this.#profiles.content(id));
  }

  /** Gives what a test of an unsaved profile needs; the `id` of a saved one lends its key, to the same origin only. */
  targetForUnsaved(input: ImageProfileInput): BackendTarget {
    const stored = input.id === undefined ? undefined : this.#profiles.find(input.id)?.content;
    return targetOf(contentFrom(input, stored));
  }

  #shown({ id, version, createdAtMs, updatedAtMs, content }: ProfileRecord<Content>): ImageProfile {
    const frame = { id, version, createdAtMs, updatedAtMs, isActive: id === this.#profiles.activeId };
    if (content === undefined) {
      const unknown = { name: "Unreadable image backend", kind: "a1111" as const, baseUrl: "", defaults: {} };
      return { ...frame, ...unknown, hasKey: false, isUnreadable: true };
    }
    const { key, ...shown } = content;
    return { ...frame, ...shown, hasKey: key !== undefined };
  }
}

function targetOf({ kind, baseUrl, key }: Content): BackendTarget {
  return { kind, baseUrl, apiKey: key?.value };
}

function contentFrom(input: ImageProfileInput, before: Content | undefined): Content {
  const { kind = before?.kind, baseUrl: givenUrl = before?.baseUrl, defaults = before?.defaults } = input;
  const { checkpoint = before?.checkpoint, workflowId = before?.workflowId } = input;
  if (kind === undefined) throw missing("kind", "a new image backend needs its kind");
  if (givenUrl === undefined) throw missing("base_url", "a new image backend needs its base URL");
  const baseUrl = normaliseBaseUrl(givenUrl);
  const set = Object.entries(defaults ?? {}).filter(([, value]) => value !== undefined && value !== null);
  // A name that only says where the server was would be wrong beside another address.
  const isOwnName = before !== undefined && before.name !== new URL(before.baseUrl).host;
  const { name = isOwnName ? before.name : undefined } = input;
  return {
    name: name?.trim() || new URL(baseUrl).host,
    kind,
    baseUrl,
    ...(checkpoint && { checkpoint }),
    ...(workflowId && { workflowId }),
    defaults: Object.fromEntries(set),
    ...keyAfter(baseUrl, input.apiKey, before?.key),
  };
}

function missing(path: string, message: string): AppError {
  return new AppError("invalid_request", `Cannot use the image backend: ${message}`, { issues: [{ path, message }] });
}
