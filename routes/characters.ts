/** `/api/characters`: characters, their pictures, imports and exports. Those that ask the card site are in card_site.ts. */
import type { AppContext } from "../middleware/env.ts";
import type { Avatars } from "../services/characters/avatars.ts";
import type { BuiltinCharacter } from "../services/characters/builtin/builtin_character.ts";
import { exportCard, type ExportedCard } from "../services/characters/card/card_export.ts";
import type { Characters, ReadCharacter } from "../services/characters/characters.ts";
import type { Portraits } from "../services/characters/portraits.ts";
import { AppError } from "../services/errors.ts";
import { attachment, TOO_LARGE_TO_IMPORT } from "./http/content_disposition.ts";
import { etag, preconditionOf } from "./http/etag.ts";
import { readStreamedUpload } from "./http/multipart.ts";
import { readPicture } from "./http/image_body.ts";
import { rawAnswer, startedStream } from "./server/raw_response.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/characters.ts";
import { toJobJson } from "./schemas/jobs.ts";
import { toVersionJson } from "./schemas/versions.ts";

/** What the routes are given. */
export interface CharacterServices {
  characters: Characters;
  avatars: Avatars;
  /** Opens who draws. */
  portraits(): Promise<Portraits>;
  builtinCharacter: BuiltinCharacter;
  /** Largest card that is no CHARX, in bytes. */
  maxCardBytes: number;
}

/** Routes of characters. */
export function characterRoutes(
  { characters, avatars, portraits, builtinCharacter, maxCardBytes }: CharacterServices,
) {
  return newRouter()
    .openapi(schema.listRoute, async (c) => {
      const { view, ...query } = c.req.valid("query");
      const isPaged = query.limit !== undefined || query.cursor !== undefined;
      const { items, next_cursor } = await characters.list(isPaged ? { limit: 100, ...query } : query);
      const body = view === "full"
        ? await startedStream(c, listPieces(characters.withCards(items), isPaged ? next_cursor : undefined))
        : listText(items, isPaged ? next_cursor : undefined);
      return rawAnswer(c.body(body, 200, { "Content-Type": "application/json" }));
    })
    .openapi(schema.getRoute, async (c) => characterAnswer(c, await characters.get(c.req.valid("param").id), 200))
    .openapi(schema.putRoute, async (c) => {
      const expected = preconditionOf(c.req.valid("header"));
      const saved = await characters.put(c.req.valid("param").id, bareCard(c.req.valid("json")), expected);
      return characterAnswer(c, saved, saved.isNew ? 201 : 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      await characters.remove(c.req.valid("param").id, preconditionOf(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.avatarRoute, async (c) => {
      if ((c.req.queries("w")?.length ?? 0) > 1) throw new AppError("invalid_request", "The width w is given twice");
      const { w } = c.req.valid("query");
      const png = await avatars.read(c.req.valid("param").id, w === undefined ? undefined : Number(w));
      return rawAnswer(c.body(png, 200, { "Content-Type": "image/png" }));
    })
    .openapi(schema.putAvatarRoute, async (c) => {
      const image = await readPicture(c);
      const expected = preconditionOf(c.req.valid("header"));
      return characterAnswer(c, await characters.setAvatar(c.req.valid("param").id, image, { expected }), 200);
    })
    .openapi(schema.versionsRoute, async (c) => {
      return c.json((await characters.versions(c.req.valid("param").id)).map(toVersionJson), 200);
    })
    .openapi(schema.versionRoute, async (c) => {
      const { id, n } = c.req.valid("param");
      const { card, png } = await characters.version(id, n);
      return c.json({ card, has_avatar: png !== undefined }, 200);
    })
    .openapi(schema.versionAvatarRoute, async (c) => {
      const { id, n } = c.req.valid("param");
      const png = await characters.versionAvatar(id, n, c.req.valid("query").w);
      return rawAnswer(c.body(png, 200, { "Content-Type": "image/png" }));
    })
    .openapi(schema.restoreVersionRoute, async (c) => {
      const { id, n } = c.req.valid("param");
      const expected = preconditionOf(c.req.valid("header"));
      return characterAnswer(c, await characters.restoreVersion(id, n, expected), 200);
    })
    .openapi(schema.importRoute, async (c) => {
      // The API document names no part.
      const read = await readStreamedUpload(c, (file) => characters.importStream(file, maxCardBytes));
      return characterAnswer(c, read, 201);
    })
    .openapi(schema.restoreAppRoute, async (c) => characterAnswer(c, await builtinCharacter.restore(), 200))
    .openapi(schema.exportRoute, async (c) => {
      const { format } = c.req.valid("query");
      const file = await exportCard(characters, c.req.valid("param").id, format, maxCardBytes);
      if (file.isTooLargeToImport) c.header("X-Parlor-Warning", TOO_LARGE_TO_IMPORT);
      const headers = {
        "Content-Type": file.contentType,
        "Content-Length": String(file.sizeBytes),
        "Content-Disposition": attachment(file.fileName),
      };
      if (c.req.raw.method === "HEAD") {
        file[Symbol.dispose](); // no body would close it
        return rawAnswer(c.body(null, 200, headers));
      }
      return rawAnswer(c.body(await startedStream(c, bodyOf(file)), 200, headers));
    })
    .openapi(schema.portraitRoute, async (c) => c.json(await (await portraits()).status(c.req.valid("param").id), 200))
    .openapi(
      schema.generateRoute,
      async (c) => c.json(toJobJson(await (await portraits()).start(c.req.valid("param").id)), 202),
    );
}

/** Answers with a character and the version of its card. */
export function characterAnswer(c: AppContext, { character, version }: ReadCharacter, status: 200 | 201): never {
  return rawAnswer(c.json(character, status, { ETag: etag(version) }));
}

/** Gives the card of a body that may hold it under `card`, alone or among the fields of a character as GET gives it. */
function bareCard(body: unknown): unknown {
  const { card, spec, data } = body as Record<string, unknown>;
  const isWrapped = typeof card === "object" && card !== null && spec === undefined && data === undefined;
  return isWrapped ? card : body;
}

async function* bodyOf(file: ExportedCard): AsyncGenerator<Uint8Array> {
  using own = file;
  yield* own.pieces();
}

function listText(items: readonly string[], cursor: string | null | undefined): string {
  return `${listBegin(cursor)}${items.join(",")}${listEnd(cursor)}`;
}

async function* listPieces(
  items: AsyncIterable<string>,
  cursor: string | null | undefined,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  let separator = listBegin(cursor);
  for await (const item of items) {
    yield encoder.encode(separator + item);
    separator = ",";
  }
  yield encoder.encode((separator === "," ? "" : separator) + listEnd(cursor));
}

function listBegin(cursor: string | null | undefined): string {
  return cursor === undefined ? "[" : '{"items":[';
}

function listEnd(cursor: string | null | undefined): string {
  return cursor === undefined ? "]" : `],"next_cursor":${JSON.stringify(cursor)}}`;
}
