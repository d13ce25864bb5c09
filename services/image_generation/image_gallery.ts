/**
 * The gallery: the encrypted settings of all generated images, newest first, also of those that a chat model returned. The images
 * themselves are attachments.
 */
import { GALLERY, GENERATED } from "../attachments/attachment_rows.ts";
import { createUuidV7 } from "../crypto/random.ts";
import type { Aad, PurposeSealer } from "../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { foldForSearch } from "../json/search_fold.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database/database.ts";
import type { ImageSettings } from "./backend_profiles.ts";

/** Maximum length of a prompt. */
export const MAX_PROMPT_CHARS = 20_000;

/** The settings with which an image was generated. */
export interface ImageOrigin extends ImageSettings {
  /** For a picture of a chat model: the user's message, of which the gallery keeps the begin. */
  prompt: string;
  /** The image server; `undefined` for a picture of a chat model. */
  profileId?: string;
  /** The chat model that returned the picture, and its connection. */
  chatModel?: { model?: string; connectionId?: string };
  checkpoint?: string;
  workflowId?: string;
  /** Name of the attachment used for image-to-image. */
  initImage?: string;
  characterId?: string;
  /** Conversation to which the image is attached; `undefined` if it's only in the gallery. */
  conversationId?: string;
  messageId?: string;
}

/** An image of the gallery. */
export interface GalleryImage extends ImageOrigin {
  /** Ids increase with time. */
  id: string;
  /** Name of the attachment. */
  name: string;
  imageWidthPx: number;
  imageHeightPx: number;
  sizeBytes: number;
  createdAtMs: number;
  /** True if the settings can't be decrypted. Only the fields of the attachment are known then. */
  isUnreadable?: true;
}

/** The dependencies of the gallery. */
export interface ImageGalleryDeps {
  db: Database;
  /** For the purpose "images". */
  sealer: PurposeSealer;
  events: EventHub;
  log: Log;
  now(): number;
  messages: {
    /** Reports whether a conversation, and a message in it, exist and aren't in the trash. */
    has(conversationId: string, messageId?: string): boolean;
    /** Removes an image from a message. @throws {AppError} `not_found`, `conflict` while a reply writes the message */
    detach(conversationId: string, messageId: string, name: string): Promise<void>;
  };
  readImage(name: string): Promise<Uint8Array>;
  toJpeg(bytes: Uint8Array, options: { maxPx: number }): Promise<Uint8Array<ArrayBuffer>>;
}

interface Row {
  id: string;
  created_at: number;
  sealed: Uint8Array;
  name: string;
  bytes: number;
  width: number;
  height: number;
}

const KIND = "generated_image";
/** Entries never change. */
const VERSION = 1;
/** Longer side, in pixels: a tile is at most 192 CSS pixels wide. */
const THUMBNAIL_PX = 384;

const ROWS = `SELECT d.id, d.created_at, d.sealed, a.name, a.bytes, a.width, a.height FROM document d
  JOIN attachment_ref r ON r.owner_id = d.id AND r.owner_kind IN ('${GALLERY}', '${GENERATED}')
  JOIN attachment a ON a.name = r.name WHERE d.kind = '${KIND}'`;

/** Maximum number of thumbnails in memory, with about 30 KB each. */
const MAX_THUMBNAILS = 200;

/** The generated images. */
export class ImageGallery {
  readonly #deps: ImageGalleryDeps;
  readonly #thumbnails = new Map<string, Uint8Array<ArrayBuffer>>();

  constructor(deps: ImageGalleryDeps) {
    this.#deps = deps;
  }

  /** Adds images that were generated together. Images that aren't in a message stay until they're removed here. */
  async add(origin: ImageOrigin, names: readonly string[]): Promise<void> {
    const createdAtMs = this.#deps.now();
    const kept: ImageOrigin = { ...origin, prompt: origin.prompt.slice(0, MAX_PROMPT_CHARS) };
    await this.#insert(kept, names.map((name) => ({ id: createUuidV7(), name, createdAtMs })));
  }

  /** Adds an image of an export, after its attachment. @throws {AppError} `unprocessable` if there is no attachment */
  async import(id: string, name: string, origin: ImageOrigin, createdAtMs = this.#deps.now()): Promise<void> {
    if (this.#deps.db.get("SELECT 1 FROM attachment WHERE name = ?", name) === undefined) {
      throw new AppError("unprocessable", "its image is missing");
    }
    await this.#insert(origin, [{ id, name, createdAtMs }]);
  }

  /** Returns whether an image is in the gallery, even if it isn't listed. */
  has(id: string): boolean {
    return this.#deps.db.get("SELECT 1 FROM document WHERE kind = ? AND id = ?", KIND, id) !== undefined;
  }

  async #insert(
    origin: ImageOrigin,
    images: readonly Pick<GalleryImage, "id" | "name" | "createdAtMs">[],
  ): Promise<void> {
    const { db, events, sealer } = this.#deps;
    const kind = origin.messageId === undefined ? GALLERY : GENERATED;
    const json = JSON.stringify(origin);
    const sealed = await Promise.all(images.map(({ id }) => sealer.seal(toAad(id), json)));
    await db.write(images.flatMap(({ id, name, createdAtMs }, index) => [
      {
        sql: "INSERT INTO document (kind, id, version, created_at, updated_at, sealed) VALUES (?, ?, ?, ?, ?, ?)",
        params: [KIND, id, VERSION, createdAtMs, createdAtMs, sealed[index]!],
      },
      {
        sql: "INSERT INTO attachment_ref (name, owner_kind, owner_id) VALUES (?, ?, ?)",
        params: [name, kind, id],
      },
    ]));
    for (const { id } of images) events.publish({ kind: KIND, id });
  }

  /**
   * Lists images, newest first. Images of deleted conversations are omitted, so a page may be shorter than the limit.
   *
   * @param options.before Id of the last image of the previous page.
   * @param options.name Only the images of this attachment.
   * @param options.words Only images whose prompt has this text.
   * @param options.conversationId Only the images of this conversation.
   */
  async list(
    { before, limit, ...wanted }: {
      before?: string;
      name?: string;
      words?: string;
      conversationId?: string;
      limit: number;
    },
  ): Promise<{ items: GalleryImage[]; nextCursor?: string }> {
    const { words = "", conversationId } = wanted;
    const query = foldForSearch(words.trim());
    const items: GalleryImage[] = [];
    for (let from = before;;) {
      const { page, nextCursor } = await this.#readPage(from, wanted.name, limit);
      items.push(
        ...page.filter((item) =>
          this.#isListed(item) && (conversationId === undefined || item.conversationId === conversationId) &&
          foldForSearch(item.prompt).includes(query)
        ),
      );
      // Prompts and conversations are encrypted, so that images that don't match are read, too.
      if (items.length > limit) return { items: items.slice(0, limit), nextCursor: items[limit - 1]!.id };
      if (nextCursor === undefined || (query === "" && conversationId === undefined)) return { items, nextCursor };
      from = nextCursor;
    }
  }

  async #readPage(
    before: string | undefined,
    name: string | undefined,
    limit: number,
  ): Promise<{ page: GalleryImage[]; nextCursor?: string }> {
    const rows = this.#deps.db.all<Row>(
      `${ROWS} AND (?1 IS NULL OR d.id < ?1) AND (?2 IS NULL OR r.name = ?2) ORDER BY d.id DESC LIMIT ?3`,
      before ?? null,
      name ?? null,
      limit + 1,
    );
    const page = await Promise.all(rows.slice(0, limit).map((row) => this.#open(row)));
    return { page, nextCursor: rows.length > limit ? page.at(-1)!.id : undefined };
  }

  /** Reads a small JPEG of an image. @throws {AppError} `not_found`, `unprocessable`, `not_available` */
  async readThumbnail(id: string): Promise<Uint8Array<ArrayBuffer>> {
    const { name } = this.#get(id);
    const known = this.#thumbnails.get(id);
    if (known !== undefined) return known;
    const jpeg = await this.#deps.toJpeg(await this.#deps.readImage(name), { maxPx: THUMBNAIL_PX });
    this.#thumbnails.set(id, jpeg);
    const [oldest] = this.#thumbnails.keys();
    if (this.#thumbnails.size > MAX_THUMBNAILS) this.#thumbnails.delete(oldest!);
    return jpeg;
  }

  /**
   * Removes an image from the gallery and from its message.
   *
   * @throws {AppError} `not_found`, `conflict` while a reply writes the message
   */
  async remove(id: string): Promise<void> {
    const { db, events, messages } = this.#deps;
    const row = this.#get(id);
    const { conversationId, messageId } = await this.#open(row);
    if (conversationId !== undefined && messageId !== undefined) {
      await messages.detach(conversationId, messageId, row.name).catch((error) => {
        if (!(error instanceof AppError) || error.code !== "not_found") throw error;
      });
    }
    await db.write([
      { sql: "DELETE FROM document WHERE kind = ? AND id = ?", params: [KIND, id] },
      {
        sql: "DELETE FROM attachment_ref WHERE owner_kind IN (?, ?) AND owner_id = ?",
        params: [GALLERY, GENERATED, id],
      },
    ]);
    this.#thumbnails.delete(id);
    events.publish({ kind: KIND, id });
  }

  #isListed({ conversationId }: GalleryImage): boolean {
    return conversationId === undefined || this.#deps.messages.has(conversationId);
  }

  #get(id: string): Row {
    const row = this.#deps.db.get<Row>(`${ROWS} AND d.id = ?`, id);
    if (row === undefined) throw new AppError("not_found", `Generated image "${id}" not found`);
    return row;
  }

  async #open(row: Row): Promise<GalleryImage> {
    const { id, name, sealed } = row;
    const file = {
      id,
      name,
      imageWidthPx: row.width,
      imageHeightPx: row.height,
      sizeBytes: row.bytes,
      createdAtMs: row.created_at,
    };
    try {
      const json = await this.#deps.sealer.open(toAad(id), sealed);
      const origin: ImageOrigin = JSON.parse(new TextDecoder().decode(json));
      const { conversationId, messageId } = origin;
      const isInMessage = conversationId !== undefined && this.#deps.messages.has(conversationId, messageId);
      if (!isInMessage) delete origin.messageId;
      return { ...origin, ...file };
    } catch (error) {
      this.#deps.log("error", "Can't read the settings of a generated image", { id, error: getErrorMessage(error) });
      return { ...file, prompt: "", isUnreadable: true };
    }
  }
}

function toAad(id: string): Aad {
  return { table: "document", id: `${KIND}/${id}`, field: "sealed", version: VERSION };
}
