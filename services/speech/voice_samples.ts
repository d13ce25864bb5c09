/** Voice samples: audio files in `<datadir>/voices/`, with encrypted metadata in app.db. */
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import type { Aad, PurposeSealer } from "../crypto/sealer.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { sortByName } from "../json/text.ts";
import type { EventHub } from "../events/event_hub.ts";
import { assertExpected, type ExpectedVersion } from "../storage/preconditions.ts";
import { readFileIfExists, writeFileAtomic } from "../storage/atomic_file.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { Sandbox } from "../platform/sandbox/sandbox.ts";
import { AUDIO_TYPES, type AudioFormat, probeAudio, sniffAudio } from "./audio_format.ts";
import { KeyedMutex } from "../async/locks.ts";
import { createVersionAad, type Version, type Versions } from "../storage/versions.ts";
import type { ReferenceSample } from "./voice_cloning.ts";

/** A voice sample. */
export interface VoiceSample {
  id: string;
  name: string;
  description: string;
  format: AudioFormat;
  contentType: string;
  durationS?: number;
  sampleRateHz?: number;
  sizeBytes: number;
  createdAtMs: number;
}

/** A new voice sample. */
export interface NewVoiceSample {
  name: string;
  description: string;
  audio: Uint8Array<ArrayBuffer>;
  /** For imported samples. Default: a new id. */
  id?: string;
  createdAtMs?: number;
}

/** The operations of the trash that voice samples use. */
export interface VoiceTrash {
  put(kind: string, title: string, record: unknown, id?: string): Statement;
  publishChange(): void;
}

/** The dependencies of voice samples. */
export interface VoiceSamplesDeps {
  /** `<datadir>/voices`, which exists. */
  folder: string;
  db: Database;
  /** For the purpose "voices". */
  sealer: PurposeSealer;
  events: EventHub;
  trash: VoiceTrash;
  versions: Versions;
  /** Reads the samples. */
  sandbox: Sandbox;
  now?: () => number;
}

interface Row {
  id: string;
  created_at: number;
  sealed: Uint8Array;
}

type Content = Omit<VoiceSample, "id" | "createdAtMs" | "contentType">;

/** The editable metadata of a sample. */
export type VoiceMetadata = Pick<VoiceSample, "name" | "description">;

interface TrashRecord {
  id: string;
  createdAtMs: number;
  content: Content;
  /** Id of its versions in the trash. Missing in records of earlier releases. */
  versions?: string;
}

const KIND = "voice";
/** Accepted formats. PCM without a header isn't accepted, because its rate is unknown. */
export const SAMPLE_FORMATS: readonly AudioFormat[] = ["wav", "mp3", "m4a", "ogg", "opus", "flac", "webm"];

/** Manages voice samples. */
export class VoiceSamples {
  readonly #options: VoiceSamplesDeps;
  readonly #locks = new KeyedMutex();

  constructor(options: VoiceSamplesDeps) {
    this.#options = options;
  }

  /** Lists the samples by name. @throws {AppError} `internal` if one can't be decrypted */
  list(): VoiceSample[] {
    const rows = this.#options.db.all<Row>("SELECT id, created_at, sealed FROM document WHERE kind = ?", KIND);
    return sortByName(rows.map((row) => this.#toSample(row)));
  }

  /** @throws {AppError} `not_found` */
  get(id: string): VoiceSample {
    const sql = "SELECT id, created_at, sealed FROM document WHERE kind = ? AND id = ?";
    const row = this.#options.db.get<Row>(sql, KIND, id);
    if (row === undefined) throw new AppError("not_found", `Voice sample "${id}" not found`);
    return this.#toSample(row);
  }

  /** Returns a sample with the path of its file. @throws {AppError} `not_found` */
  getReference(id: string): ReferenceSample {
    const { name, format } = this.get(id);
    return { id, name, format, path: this.#getPath(id, format) };
  }

  /**
   * Opens the file of a sample. The caller closes it.
   *
   * @throws {AppError} `not_found`; `internal` if its file is missing
   */
  async open(id: string): Promise<{ sample: VoiceSample; file: Deno.FsFile }> {
    const sample = this.get(id);
    try {
      return { sample, file: await Deno.open(this.#getPath(id, sample.format), { read: true }) };
    } catch (cause) {
      throw new AppError("internal", `Can't read the audio of voice sample "${id}": ${getErrorMessage(cause)}`, {
        cause,
      });
    }
  }

  /**
   * Adds a sample. Its format is detected by its signature.
   *
   * @throws {AppError} `unsupported_media_type` for an unknown format, `unprocessable` for an invalid file, `storage_full`;
   *   `conflict` if the id is taken
   */
  async add({ name, description, audio, ...known }: NewVoiceSample): Promise<VoiceSample> {
    const format = sniffAudio(audio);
    if (format === undefined || !SAMPLE_FORMATS.includes(format)) {
      throw new AppError(
        "unsupported_media_type",
        `Can't add the voice sample: its format must be one of ${SAMPLE_FORMATS.join(", ")}`,
      );
    }
    const sizeBytes = audio.length;
    const properties = await probeAudio(this.#options.sandbox, audio, format);
    const id = known.id ?? createUuidV7();
    this.#checkIdIsFree(id);
    const createdAtMs = known.createdAtMs ?? (this.#options.now ?? Date.now)();
    const content: Content = { name, description, format, ...properties, sizeBytes };
    const path = this.#getPath(id, format);
    await writeFileAtomic(path, audio);
    try {
      await this.#options.db.write([this.#insert(id, createdAtMs, content)]);
    } catch (error) {
      await Deno.remove(path).catch(() => {});
      throw error;
    }
    this.#publish(id);
    return { id, createdAtMs, contentType: AUDIO_TYPES[format], ...content };
  }

  /** Changes the metadata of a sample. `undefined` fields don't change. @throws {AppError} `not_found` */
  change(id: string, changes: Partial<VoiceMetadata>): Promise<VoiceSample> {
    return this.#locks.run(id, () => this.#change(id, { changes, cause: "patch" }));
  }

  /** Returns the ETag of a sample, which changes with its metadata. */
  hashMetadata({ name, description }: VoiceMetadata): string {
    return createHash("sha256").update(JSON.stringify([name, description])).digest("base64url").slice(0, 22);
  }

  /** Lists the earlier versions of a sample, newest first. @throws {AppError} `not_found` */
  async listVersions(id: string): Promise<Version[]> {
    this.get(id);
    return await this.#options.versions.list(toResource(id));
  }

  /** Returns the metadata of an earlier version. @throws {AppError} `not_found`, `internal` */
  async getVersion(id: string, n: number): Promise<VoiceMetadata> {
    this.get(id);
    const path = (await this.#options.versions.listParts(toResource(id), n)).get(toVersionFileName(id));
    const sealed = path === undefined ? undefined : await readFileIfExists(path);
    if (sealed === undefined) throw new AppError("internal", `Version ${n} of the voice sample "${id}" is missing`);
    const opened = this.#options.sealer.openNow(createVersionAad(toResource(id), n), sealed);
    const { name, description }: VoiceMetadata = JSON.parse(new TextDecoder().decode(opened));
    return { name, description };
  }

  /** Restores the metadata of an earlier version. The current metadata becomes a version. @throws {AppError} `not_found` */
  restoreVersion(id: string, n: number, expected?: ExpectedVersion): Promise<VoiceSample> {
    return this.#locks.run(id, async () => {
      const changes = await this.getVersion(id, n);
      return await this.#change(id, { changes, expected, cause: "restore" });
    });
  }

  async #change(
    id: string,
    { changes, expected, cause }: {
      changes: Partial<VoiceMetadata>;
      expected?: ExpectedVersion;
      cause: "patch" | "restore";
    },
  ): Promise<VoiceSample> {
    const { createdAtMs, contentType: _, id: __, ...content } = this.get(id);
    assertExpected(`voice sample "${id}"`, expected, this.hashMetadata(content));
    const { name = content.name, description = content.description } = changes;
    const changed: Content = { ...content, name, description };
    const isKept = name !== content.name || description !== content.description;
    const bytes = (n: number) =>
      this.#options.sealer.sealNow(createVersionAad(toResource(id), n), JSON.stringify(content));
    const parts = isKept ? [{ name: toVersionFileName(id), bytes }] : [];
    await this.#options.versions.replace(toResource(id), { cause, parts, touched: [] }, () =>
      this.#options.db.write([{
        sql: "UPDATE document SET updated_at = ?, sealed = ? WHERE kind = ? AND id = ?",
        params: [(this.#options.now ?? Date.now)(), this.#seal(id, changed), KIND, id],
        expectChanges: 1,
      }]));
    this.#publish(id);
    return { id, createdAtMs, contentType: AUDIO_TYPES[content.format], ...changed };
  }

  /** Moves a sample to the trash. Its file stays until the sample is deleted from the trash. @throws {AppError} `not_found` */
  remove(id: string): Promise<void> {
    return this.#locks.run(id, () => this.#remove(id));
  }

  async #remove(id: string): Promise<void> {
    const { createdAtMs, contentType: _, id: __, ...content } = this.get(id);
    const record = { id, createdAtMs, content, versions: createUuidV7() } satisfies TrashRecord;
    await this.#options.db.write([
      { sql: "DELETE FROM document WHERE kind = ? AND id = ?", params: [KIND, id], expectChanges: 1 },
      this.#options.trash.put(KIND, content.name, record),
    ]);
    await this.#options.versions.moveToTrash(toResource(id), record.versions);
    this.#publish(id);
    this.#options.trash.publishChange();
  }

  /** Returns the handler with which the trash restores and deletes samples. */
  createTrashHandler() {
    return {
      restore: async (record: unknown, removal: Statement) => {
        const { id, createdAtMs, content, versions } = record as TrashRecord;
        await this.#options.db.write([this.#insert(id, createdAtMs, content), removal]);
        await this.#options.versions.restoreFromTrash(toResource(id), versions);
        this.#publish(id);
      },
      purge: async (record: unknown, removal: Statement) => {
        const { id, content, versions } = record as TrashRecord;
        await this.#options.db.write([removal]);
        await this.#options.versions.purge("voices", versions);
        await Deno.remove(this.#getPath(id, content.format)).catch((error) => {
          if (!(error instanceof Deno.errors.NotFound)) throw error;
        });
      },
    };
  }

  /** Rejects an ID that is taken, even by a sample in the trash, whose file stays in place. */
  #checkIdIsFree(id: string): void {
    const file = SAMPLE_FORMATS.map((format) => this.#getPath(id, format)).find((path) => exists(path));
    if (file !== undefined) {
      throw new AppError("conflict", `Can't add the voice sample: the ID "${id}" is already taken`);
    }
  }

  #insert(id: string, createdAtMs: number, content: Content): Statement {
    return {
      sql: "INSERT INTO document (kind, id, version, created_at, updated_at, sealed) VALUES (?, ?, 1, ?, ?, ?)",
      params: [KIND, id, createdAtMs, createdAtMs, this.#seal(id, content)],
    };
  }

  #seal(id: string, content: Content): Uint8Array {
    return this.#options.sealer.sealNow(toAad(id), JSON.stringify(content));
  }

  #toSample({ id, created_at: createdAtMs, sealed }: Row): VoiceSample {
    const content: Content = JSON.parse(new TextDecoder().decode(this.#options.sealer.openNow(toAad(id), sealed)));
    return { id, createdAtMs, contentType: AUDIO_TYPES[content.format], ...content };
  }

  /**
   * Returns the path of a sample. `format` is from a closed list and IDs match a pattern, so the path can't leave the
   * folder.
   */
  #getPath(id: string, format: AudioFormat): string {
    return join(this.#options.folder, basename(`${id}.${format}`));
  }

  #publish(id: string): void {
    this.#options.events.publish({ kind: KIND, id });
  }
}

function toResource(id: string) {
  return { kind: "voices" as const, id };
}

/** Returns the file name of the sealed metadata in a version. Key rotation reads the id from it. */
function toVersionFileName(id: string): string {
  return `${id}.sealed`;
}

function toAad(id: string): Aad {
  return { table: "document", id: `${KIND}/${id}`, field: "sealed", version: 1 };
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
