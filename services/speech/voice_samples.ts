/** The library of voice samples: audio files under `<datadir>/voices/`, what is known of each sealed in app.db. */
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import type { Place, PurposeSealer } from "../crypto/sealer.ts";
import { uuidV7 } from "../crypto/random.ts";
import { AppError, messageOf } from "../errors.ts";
import { inNameOrder } from "../storage/collation.ts";
import type { EventHub } from "../events/event_hub.ts";
import { type ExpectedVersion, isExpected } from "../storage/preconditions.ts";
import { readFileIfExists, writeFileAtomic } from "../storage/atomic_file.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { AUDIO_TYPES, type AudioFormat, sniffAudio } from "./audio_format.ts";
import { probeAudio } from "./audio_probe.ts";
import { KeyedMutex } from "../async/keyed_mutex.ts";
import { type Version, versionPlace, type Versions } from "../storage/versions.ts";
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

/** What somebody brings. */
export interface NewVoiceSample {
  name: string;
  description: string;
  audio: Uint8Array<ArrayBuffer>;
  /** Of one that comes from elsewhere; made here when left out. */
  id?: string;
  createdAtMs?: number;
}

/** Where removed things go. */
export interface TrashBin {
  put(kind: string, title: string, record: unknown, id?: string): Statement;
  changed(): void;
}

/** What the library needs. */
export interface VoiceSamplesOptions {
  /** `<datadir>/voices`, there. */
  folder: string;
  db: Database;
  /** For the purpose "voices". */
  sealer: PurposeSealer;
  events: EventHub;
  trash: TrashBin;
  versions: Versions;
  now?: () => number;
}

interface Row {
  id: string;
  created_at: number;
  sealed: Uint8Array;
}

type Content = Omit<VoiceSample, "id" | "createdAtMs" | "contentType">;

/** What is said of a sample, which is what changes. */
export type VoiceText = Pick<VoiceSample, "name" | "description">;

interface TrashRecord {
  id: string;
  createdAtMs: number;
  content: Content;
  /** Names its versions in the trash; absent in records of earlier releases. */
  versions?: string;
}

const KIND = "voice";
/** Formats that are taken in; headerless PCM tells nothing of itself. */
export const SAMPLE_FORMATS: readonly AudioFormat[] = ["wav", "mp3", "m4a", "ogg", "opus", "flac", "webm"];

/** The samples. */
export class VoiceSamples {
  readonly #options: VoiceSamplesOptions;
  readonly #locks = new KeyedMutex();

  constructor(options: VoiceSamplesOptions) {
    this.#options = options;
  }

  /** Lists the samples, by name. One that cannot be opened is left out of nothing: it fails the list, since it is a defect. */
  list(): VoiceSample[] {
    const rows = this.#options.db.all<Row>("SELECT id, created_at, sealed FROM document WHERE kind = ?", KIND);
    return inNameOrder(rows.map((row) => this.#sampleOf(row)));
  }

  /** @throws {AppError} `not_found` */
  get(id: string): VoiceSample {
    const sql = "SELECT id, created_at, sealed FROM document WHERE kind = ? AND id = ?";
    const row = this.#options.db.get<Row>(sql, KIND, id);
    if (row === undefined) throw new AppError("not_found", `There is no voice sample "${id}"`);
    return this.#sampleOf(row);
  }

  /** Gives a sample with the place of its file. @throws {AppError} `not_found` */
  reference(id: string): ReferenceSample {
    const { name, format } = this.get(id);
    return { id, name, format, path: this.#path(id, format) };
  }

  /**
   * Opens the file of a sample. The caller closes it.
   *
   * @throws {AppError} `not_found`, `internal` when its file is gone
   */
  async open(id: string): Promise<{ sample: VoiceSample; file: Deno.FsFile }> {
    const sample = this.get(id);
    try {
      return { sample, file: await Deno.open(this.#path(id, sample.format), { read: true }) };
    } catch (cause) {
      throw new AppError("internal", `Cannot read the audio of the voice sample "${id}": ${messageOf(cause)}`, {
        cause,
      });
    }
  }

  /**
   * Takes a sample in: told by its signature alone, read once for its length, stored.
   *
   * @throws {AppError} `unsupported_media_type` for what is no audio of a known format, `unprocessable` for a broken file,
   *   `storage_full`, `conflict` for an id that is taken
   */
  async add({ name, description, audio, ...known }: NewVoiceSample): Promise<VoiceSample> {
    const format = sniffAudio(audio);
    if (format === undefined || !SAMPLE_FORMATS.includes(format)) {
      throw new AppError(
        "unsupported_media_type",
        `Cannot take the file as a voice sample: it is none of ${SAMPLE_FORMATS.join(", ")}`,
      );
    }
    const sizeBytes = audio.length;
    // A copy goes to the Worker, which keeps what it is given.
    const facts = await probeAudio(audio.slice(), format);
    const id = known.id ?? uuidV7();
    this.#refuseTaken(id);
    const createdAtMs = known.createdAtMs ?? (this.#options.now ?? Date.now)();
    const content: Content = { name, description, format, ...facts, sizeBytes };
    const path = this.#path(id, format);
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

  /** Changes what a sample is called and what is said of it; what is left out stays. @throws {AppError} `not_found` */
  change(id: string, changes: Partial<VoiceText>): Promise<VoiceSample> {
    return this.#locks.run(id, () => this.#change(id, { changes, cause: "patch" }));
  }

  /** Returns what an ETag says of a sample: it changes with its name and description. */
  versionOf({ name, description }: VoiceText): string {
    return createHash("sha256").update(JSON.stringify([name, description])).digest("base64url").slice(0, 22);
  }

  /** Lists the earlier versions of a sample, newest first. @throws {AppError} `not_found` */
  async versions(id: string): Promise<Version[]> {
    this.get(id);
    return await this.#options.versions.list(resourceOf(id));
  }

  /** Returns what an earlier version said. @throws {AppError} `not_found`, `internal` */
  async version(id: string, n: number): Promise<VoiceText> {
    this.get(id);
    const path = (await this.#options.versions.parts(resourceOf(id), n)).get(versionPart(id));
    const sealed = path === undefined ? undefined : await readFileIfExists(path);
    if (sealed === undefined) throw new AppError("internal", `Version ${n} of the voice sample "${id}" is missing`);
    const opened = this.#options.sealer.openNow(versionPlace(resourceOf(id), n), sealed);
    const { name, description }: VoiceText = JSON.parse(new TextDecoder().decode(opened));
    return { name, description };
  }

  /** Restores name and description of an earlier version. What they replace becomes a version. @throws {AppError} `not_found` */
  restoreVersion(id: string, n: number, expected?: ExpectedVersion): Promise<VoiceSample> {
    return this.#locks.run(id, async () => {
      const changes = await this.version(id, n);
      return await this.#change(id, { changes, expected, cause: "restore" });
    });
  }

  async #change(
    id: string,
    { changes, expected, cause }: {
      changes: Partial<VoiceText>;
      expected?: ExpectedVersion;
      cause: "patch" | "restore";
    },
  ): Promise<VoiceSample> {
    const { createdAtMs, contentType: _, id: __, ...content } = this.get(id);
    if (!isExpected(expected, this.versionOf(content))) {
      throw new AppError("revision_mismatch", `The voice sample "${id}" has changed`);
    }
    const { name = content.name, description = content.description } = changes;
    const changed: Content = { ...content, name, description };
    const isKept = name !== content.name || description !== content.description;
    const bytes = (n: number) => this.#options.sealer.sealNow(versionPlace(resourceOf(id), n), JSON.stringify(content));
    const parts = isKept ? [{ name: versionPart(id), bytes }] : [];
    await this.#options.versions.replace(resourceOf(id), { cause, parts, touched: [] }, () =>
      this.#options.db.write([{
        sql: "UPDATE document SET updated_at = ?, sealed = ? WHERE kind = ? AND id = ?",
        params: [(this.#options.now ?? Date.now)(), this.#sealed(id, changed), KIND, id],
        expectChanges: 1,
      }]));
    this.#publish(id);
    return { id, createdAtMs, contentType: AUDIO_TYPES[content.format], ...changed };
  }

  /** Moves a sample to the trash; its file stays until the trash lets go of it. @throws {AppError} `not_found` */
  remove(id: string): Promise<void> {
    return this.#locks.run(id, () => this.#remove(id));
  }

  async #remove(id: string): Promise<void> {
    const { createdAtMs, contentType: _, id: __, ...content } = this.get(id);
    const record = { id, createdAtMs, content, versions: uuidV7() } satisfies TrashRecord;
    await this.#options.db.write([
      { sql: "DELETE FROM document WHERE kind = ? AND id = ?", params: [KIND, id], expectChanges: 1 },
      this.#options.trash.put(KIND, content.name, record),
    ]);
    await this.#options.versions.moveToTrash(resourceOf(id), record.versions);
    this.#publish(id);
    this.#options.trash.changed();
  }

  /** What the trash does with removed samples. */
  trashKind() {
    return {
      restore: async (record: unknown, takeOut: Statement) => {
        const { id, createdAtMs, content, versions } = record as TrashRecord;
        await this.#options.db.write([this.#insert(id, createdAtMs, content), takeOut]);
        await this.#options.versions.restoreFromTrash(resourceOf(id), versions);
        this.#publish(id);
      },
      purge: async (record: unknown, takeOut: Statement) => {
        const { id, content, versions } = record as TrashRecord;
        await this.#options.db.write([takeOut]);
        await this.#options.versions.purge("voices", versions);
        await Deno.remove(this.#path(id, content.format)).catch((error) => {
          if (!(error instanceof Deno.errors.NotFound)) throw error;
        });
      },
    };
  }

  /** Also by one in the trash, whose file lies where it lay. */
  #refuseTaken(id: string): void {
    const file = SAMPLE_FORMATS.map((format) => this.#path(id, format)).find((path) => exists(path));
    if (file !== undefined) throw new AppError("conflict", `There is a voice sample "${id}" already`);
  }

  #insert(id: string, createdAtMs: number, content: Content): Statement {
    return {
      sql: "INSERT INTO document (kind, id, version, created_at, updated_at, sealed) VALUES (?, ?, 1, ?, ?, ?)",
      params: [KIND, id, createdAtMs, createdAtMs, this.#sealed(id, content)],
    };
  }

  #sealed(id: string, content: Content): Uint8Array {
    return this.#options.sealer.sealNow(placeOf(id), JSON.stringify(content));
  }

  #sampleOf({ id, created_at: createdAtMs, sealed }: Row): VoiceSample {
    const content: Content = JSON.parse(new TextDecoder().decode(this.#options.sealer.openNow(placeOf(id), sealed)));
    return { id, createdAtMs, contentType: AUDIO_TYPES[content.format], ...content };
  }

  /** `format` comes from a closed list and ids from the one pattern, so that this is a name and never a path. */
  #path(id: string, format: AudioFormat): string {
    return join(this.#options.folder, basename(`${id}.${format}`));
  }

  #publish(id: string): void {
    this.#options.events.publish({ kind: KIND, id });
  }
}

function resourceOf(id: string) {
  return { kind: "voices" as const, id };
}

/** Names the sealed text of a sample in a version; the key rotation reads the id from it. */
function versionPart(id: string): string {
  return `${id}.sealed`;
}

function placeOf(id: string): Place {
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
