/**
 * Names of attachments, and the table rows of attachments and of the references to them.
 *
 * Owners of references: `conversation` (messages, revisions, head, draft), `trash`, `settings` (the owner's), and
 * `gallery` (generated images that aren't in a message). Other kinds aren't owners: `grace` retains an attachment until
 * the time in its ID, `trash_file` retains the file of a removed attachment and has the version in its ID, and
 * `generated` links an image of a message to its settings.
 */
import { isDeviceName } from "../storage/ids.ts";
import type { ImageType } from "./images/image_header.ts";
import type { Database, SqlValue, Statement } from "../storage/database/database.ts";
import type { TimeRange } from "../storage/retention_clock.ts";
import { hasTwoMp3Frames, sniffAudio } from "../speech/audio_format.ts";

/** Characters of a name. */
const NAME = "[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}";

/** Matches a whole name. */
export const ATTACHMENT_NAME = new RegExp(`^${NAME}$`);

/** Reports whether an attachment may be stored under a name. */
export function isAttachmentName(name: string): boolean {
  return ATTACHMENT_NAME.test(name) && !isDeviceName(name);
}

const URL_PREFIX = "/api/attachments/";

const ENDINGS: Record<ImageType | AudioType, string> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/gif": "gif",
  "audio/wav": "wav",
  "audio/webm": "webm",
  "audio/ogg": "ogg",
  "audio/mp4": "m4a",
  "audio/mpeg": "mp3",
  "audio/flac": "flac",
};

/** Returns the URL path of an attachment. */
export function createAttachmentUrl(name: string): string {
  return URL_PREFIX + name;
}

/** Returns the name in the URL path of an attachment; `undefined` for other URLs. */
export function parseAttachmentUrl(url: string): string | undefined {
  const name = url.startsWith(URL_PREFIX) ? url.slice(URL_PREFIX.length) : "";
  return ATTACHMENT_NAME.test(name) ? name : undefined;
}

/** Returns the file name of an attachment. @param stem Without extension. */
export function toAttachmentFileName(stem: string, type: ImageType | AudioType): string {
  return `${stem}.${ENDINGS[type]}`;
}

/** Matches the URL path of an attachment. */
export const ATTACHMENT_URL = new RegExp(`^${URL_PREFIX}${NAME}$`);

/**
 * Finds all attachments that JSON text refers to: URLs anywhere, and names in `attachments` fields.
 *
 * May find too many, for example in a message that only mentions a URL. Those images are stored longer than needed.
 */
export function findAttachmentNames(json: string): string[] {
  const names = new Set<string>();
  if (json.includes(URL_PREFIX)) {
    for (const [, name] of json.matchAll(URLS)) names.add(name!);
  }
  if (json.includes('"attachments":[')) {
    for (const [, list] of json.matchAll(LISTS)) {
      for (const [, name] of list!.matchAll(LISTED)) names.add(name!);
    }
  }
  return [...names];
}

const URLS = new RegExp(URL_PREFIX + `(${NAME})`, "g");
const LISTS = /"attachments":\[([^\]]*)\]/g;
const LISTED = new RegExp(`"(${NAME})"`, "g");

/** A stored attachment. */
export interface AttachmentRow {
  name: string;
  type: ImageType | AudioType;
  bytes: number;
  /** In pixels, as shown; `null` for recordings. */
  width: number | null;
  height: number | null;
  /** Creation time, which is also the version: unique per name. */
  created_at: number;
}

/** Owner kind of generated images that aren't in a message. */
export const GALLERY = "gallery";
/** Links a generated image to its settings. Doesn't retain the image. */
export const GENERATED = "generated";
const OWNERS = `'conversation', 'trash', 'settings', '${GALLERY}'`;

/** How long an unreferenced attachment is stored. */
export const GRACE_MS = 24 * 60 * 60 * 1000;

const COLUMNS = "name, type, bytes, width, height, created_at";

/** Returns the statement that saves a row. */
export function saveRow(row: AttachmentRow): Statement {
  return {
    sql: `INSERT OR REPLACE INTO attachment (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)`,
    params: [row.name, row.type, row.bytes, row.width, row.height, row.created_at],
  };
}

/** Returns the statement that removes this version of a row. */
export function removeRow({ name, created_at }: AttachmentRow): Statement {
  return {
    sql: "DELETE FROM attachment WHERE name = ? AND created_at = ?",
    params: [name, created_at],
    expectChanges: 1,
  };
}

/** Returns the statement that retains an attachment until a time. */
export function setGracePeriod(name: string, untilMs: number): Statement {
  return createRefStatement([name], "grace", String(untilMs));
}

/** Returns the statements that record an owner's references to all attachments in JSON text. */
export function addReferences(
  ownerKind: "conversation" | "trash" | "settings",
  ownerId: string,
  json: string,
): Statement[] {
  const names = findAttachmentNames(json);
  return names.length === 0 ? [] : [createRefStatement(names, ownerKind, ownerId)];
}

/** Returns the statements that replace an owner's references with those to all attachments in JSON text. */
export function replaceReferences(ownerKind: "settings", ownerId: string, json: string): Statement[] {
  return [
    { sql: "DELETE FROM attachment_ref WHERE owner_kind = ? AND owner_id = ?", params: [ownerKind, ownerId] },
    ...addReferences(ownerKind, ownerId, json),
  ];
}

/** Returns the statement that retains the file of a removed attachment. */
export function retainFile({ name, created_at }: AttachmentRow): Statement {
  return createRefStatement([name], "trash_file", String(created_at));
}

/** Returns the statement that undoes `retainFile`. */
export function releaseFile({ name, created_at }: AttachmentRow): Statement {
  return {
    sql: "DELETE FROM attachment_ref WHERE name = ? AND owner_kind = 'trash_file' AND owner_id = ?",
    params: [name, String(created_at)],
  };
}

function createRefStatement(names: string[], ownerKind: string, ownerId: string): Statement {
  return {
    sql: "INSERT OR IGNORE INTO attachment_ref (name, owner_kind, owner_id) SELECT value, ?, ? FROM json_each(?)",
    params: [ownerKind, ownerId, JSON.stringify(names)],
  };
}

/** Sizes of images in pixels, as shown, by the name of the attachment. */
export type ImageSizes = Record<string, { width: number; height: number }>;

/** Reads rows. */
export class AttachmentRows {
  #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(name: string): AttachmentRow | undefined {
    return this.#db.get<AttachmentRow>(`SELECT ${COLUMNS} FROM attachment WHERE name = ?`, name);
  }

  /** Returns the sizes of all images that JSON text refers to. */
  findSizes(json: string): ImageSizes {
    const names = findAttachmentNames(json);
    if (names.length === 0) return {};
    const rows = this.#db.all<{ name: string; width: number; height: number }>(
      `SELECT name, width, height FROM attachment
       WHERE name IN (SELECT value FROM json_each(?)) AND width IS NOT NULL AND height IS NOT NULL`,
      JSON.stringify(names),
    );
    return Object.fromEntries(rows.map(({ name, width, height }) => [name, { width, height }]));
  }

  /** Finds a name that differs from this one only in case. */
  findCaseClash(name: string): string | undefined {
    return this.#listColumn(
      "SELECT name FROM attachment WHERE lower(name) = lower(?) AND name <> ? LIMIT 1",
      name,
      name,
    )[0];
  }

  /** Lists name and version of every file that must exist. */
  listFiles(): { name: string; version: number }[] {
    return this.#db.all(
      `SELECT name, created_at AS version FROM attachment UNION
       SELECT name, CAST(owner_id AS INTEGER) FROM attachment_ref WHERE owner_kind = 'trash_file'`,
    );
  }

  /** Lists the conversations that refer, or once referred, to attachments. */
  listConversations(): string[] {
    return this.#listColumn("SELECT DISTINCT owner_id FROM attachment_ref WHERE owner_kind = 'conversation'");
  }

  /** Lists unreferenced attachments whose grace period is over. @param expired Times at which it started. */
  listExpired(expired: readonly TimeRange[]): AttachmentRow[] {
    return this.#db.all<AttachmentRow>(`SELECT ${COLUMNS} FROM attachment WHERE ${UNUSED}`, toUnusedParam(expired));
  }

  /** Returns the statements that remove an attachment if it's still unreferenced. */
  removeUnused(row: AttachmentRow, expired: readonly TimeRange[]): Statement[] {
    return [
      {
        sql: `DELETE FROM attachment WHERE name = ? AND created_at = ? AND ${UNUSED}`,
        params: [row.name, row.created_at, toUnusedParam(expired)],
        expectChanges: 1,
      },
      { sql: "DELETE FROM attachment_ref WHERE name = ? AND owner_kind = 'grace'", params: [row.name] },
    ];
  }

  /** Returns the statements that remove dangling references and start the grace period of unreferenced attachments. */
  cleanUp(nowMs: number): Statement[] {
    return [
      {
        sql: "DELETE FROM attachment_ref WHERE owner_kind = 'trash' AND owner_id NOT IN (SELECT id FROM trash)",
      },
      {
        sql: `INSERT OR IGNORE INTO attachment_ref (name, owner_kind, owner_id)
          SELECT name, 'grace', ? FROM attachment WHERE NOT EXISTS
          (SELECT 1 FROM attachment_ref r WHERE r.name = attachment.name AND r.owner_kind NOT IN ('trash_file', '${GENERATED}'))`,
        params: [String(nowMs + GRACE_MS)],
      },
      // The settings of deleted images.
      {
        sql: `DELETE FROM document WHERE kind = 'generated_image' AND NOT EXISTS (SELECT 1 FROM attachment_ref r
          JOIN attachment a ON a.name = r.name WHERE r.owner_id = document.id AND r.owner_kind IN (?, ?))`,
        params: [GALLERY, GENERATED],
      },
      {
        sql: `DELETE FROM attachment_ref WHERE owner_kind IN (?, ?)
          AND owner_id NOT IN (SELECT id FROM document WHERE kind = 'generated_image')`,
        params: [GALLERY, GENERATED],
      },
      {
        // Attachments in use need no grace period. It starts again once they are unreferenced.
        sql:
          `DELETE FROM attachment_ref AS g WHERE g.owner_kind = 'grace' AND (CAST(g.owner_id AS INTEGER) <= ? AND EXISTS
          (SELECT 1 FROM attachment_ref r WHERE r.name = g.name AND r.owner_kind IN (${OWNERS}))
          OR NOT EXISTS (SELECT 1 FROM attachment a WHERE a.name = g.name))`,
        params: [nowMs],
      },
    ];
  }

  #listColumn(sql: string, ...params: SqlValue[]): string[] {
    return this.#db.all<Record<string, string>>(sql, ...params).map((row) => Object.values(row)[0]!);
  }
}

/** Returns the parameter of `UNUSED`: times at which grace periods ended, as JSON. */
function toUnusedParam(expired: readonly TimeRange[]): string {
  // JSON has no infinity.
  return JSON.stringify(expired.map(({ fromMs, toMs }) => [Math.max(fromMs, 0), toMs + GRACE_MS]));
}

/** SQL condition: no owner, and the grace period is over. Its parameter comes from `toUnusedParam`. */
const UNUSED = `NOT EXISTS (SELECT 1 FROM attachment_ref r WHERE r.name = attachment.name AND
  (r.owner_kind IN (${OWNERS}) OR r.owner_kind = 'grace' AND NOT EXISTS
  (SELECT 1 FROM json_each(?) t WHERE CAST(r.owner_id AS INTEGER) BETWEEN t.value ->> 0 AND t.value ->> 1)))
  AND EXISTS (SELECT 1 FROM attachment_ref r WHERE r.name = attachment.name AND r.owner_kind = 'grace')`;

/** Supported types of recordings, and the only types served for audio. */
export type AudioType = "audio/wav" | "audio/webm" | "audio/ogg" | "audio/mp4" | "audio/mpeg" | "audio/flac";

/** Major brands of MP4 files that may be audio; AVIF and HEIC images have others. @see https://mp4ra.org/registered-types/brands */
const MP4_BRAND = /^(M4[AB] |iso[m2-9]|mp4[12]|dash|avc1)$/;

/**
 * Recognizes the type of a recording.
 *
 * @param head The file or its start: 1.5 kB, and any ID3 tags before that.
 * @returns `undefined` if it isn't WAV, WebM, Ogg, MP4, MP3 or FLAC. Files with a video track are recognized as audio and play
 *   without their picture.
 */
export function sniffRecording(head: Uint8Array): AudioType | undefined {
  switch (sniffAudio(head)) {
    case "wav":
      return "audio/wav";
    case "webm":
      return "audio/webm";
    case "ogg":
    case "opus":
      return "audio/ogg";
    case "flac":
      return "audio/flac";
    case "m4a":
      return MP4_BRAND.test(String.fromCharCode(...head.subarray(8, 12))) ? "audio/mp4" : undefined;
    case "mp3": {
      // A single frame header could be a coincidence. A tag before it is enough.
      const isTagged = head[0] === 0x49;
      return isTagged || hasTwoMp3Frames(head) ? "audio/mpeg" : undefined;
    }
    default:
      return undefined;
  }
}
