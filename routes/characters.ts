/** `/api/characters`: characters, the search of card sites, and characters written by a model. */
import type { Services } from "../services/services.ts";
import { type AppContext, getClientSignal } from "../middleware/env.ts";
import { parseCard, unwrapCard } from "../services/characters/card/card.ts";
import { type CardCodec, toReadCard } from "../services/characters/card/card_codec.ts";
import { exportCard, type ExportedCard } from "../services/characters/card/card_export.ts";
import { createWholeCardLedger } from "../services/characters/card/card_ledger.ts";
import { type ReadCharacter, toCardJson, toCharacterJson } from "../services/characters/characters.ts";
import type { CharacterStream } from "../services/characters/generation/character_writing.ts";
import { KeyedMutex } from "../services/async/locks.ts";
import { AppError } from "../services/errors.ts";
import { UnparsedJson } from "../services/json/json_body.ts";
import type { Precondition } from "../services/storage/preconditions.ts";
import { HashedStream } from "../services/storage/idempotency.ts";
import { createErrorBody } from "./errors.ts";
import { formatAttachmentHeader, TOO_LARGE_TO_IMPORT } from "./http/file_response.ts";
import { formatOwnerEtag, parsePrecondition, toVersionPrecondition } from "./http/etag.ts";
import { createEventStream, EVENT_STREAM_HEADERS, type FrameSource } from "./http/event_stream.ts";
import { readImage, readStreamedUpload } from "./http/form.ts";
import { createRouter, parseBody } from "./http/router.ts";
import { createCharacterRoute, encodeFrames, toCreationFrame } from "./schemas/characters.ts";
import * as schema from "./schemas/characters.ts";
import { toLedgerField } from "./schemas/common.ts";
import { toJobJson } from "./schemas/jobs.ts";
import { toVersionJson } from "./schemas/versions.ts";
import { openResponseStream, passRawResponse } from "./http/raw_response.ts";

/** Routes of characters. */
export function characterRoutes(services: Services) {
  // Fixed paths such as /api/characters/search come before /api/characters/{id}.
  return createRouter()
    .route("/", cardSiteRoutes(services))
    .route("/", generationRoutes(services))
    .route("/", cardRoutes(services));
}

function cardSiteRoutes(services: Services) {
  return createRouter()
    .openapi(schema.searchRoute, async (c) => {
      const site = await services.cardSite();
      const { q, tags, sort, page, nsfw } = c.req.valid("query");
      const search = {
        query: q.trim(),
        tags: tags.split(",").map((tag) => tag.trim()).filter((tag) => tag !== ""),
        sort,
        page,
        isForAdults: nsfw === "true",
      };
      return c.json(await site.search(search, getClientSignal(c)), 200);
    })
    .openapi(schema.resultImageRoute, async (c) => {
      const site = await services.cardSite();
      const { creator, slug } = c.req.valid("param");
      const { bytes, type } = await site.fetchAvatar(creator, slug, getClientSignal(c));
      return passRawResponse(c.body(bytes, 200, { "Content-Type": type, "Content-Disposition": "attachment" }));
    })
    .openapi(schema.importUrlRoute, async (c) => {
      const site = await services.cardSite();
      const { characters } = await services.characters();
      const { bytes, image } = await site.fetchCard(c.req.valid("json").url.trim(), getClientSignal(c));
      const reusesSame = c.req.valid("query").reuse;
      const { isPresent, ...imported } = await characters.importCard(bytes, { image, reusesSame });
      return await sendCharacter(services, c, imported, isPresent ? 200 : 201);
    });
}

function generationRoutes(services: Services) {
  return createRouter().openapi(createCharacterRoute, async (c) => {
    const creator = await services.characterGenerator();
    const { background, portrait, ...request } = c.req.valid("json");
    if (background) {
      const job = await creator.start(request, portrait);
      c.header("X-Parlor-Job-Id", job.id);
      return c.json(toJobJson(job), 202);
    }
    const writing = await creator.write(request, getClientSignal(c));
    const source = streamWriting(writing, c.var.requestId);
    return passRawResponse(c.body(createEventStream(source), 200, EVENT_STREAM_HEADERS));
  });
}

/** Streams the events of writing a character. Events before a failure are sent before the error. */
function streamWriting(writing: CharacterStream, requestId: string): FrameSource {
  const steps = writing.streamUpdates();
  let state: "begin" | "body" | "over" = "begin";
  return {
    async next() {
      if (state === "over") return undefined;
      if (state === "begin") {
        state = "body";
        return encodeFrames([toCreationFrame("start", { model: writing.model })]);
      }
      try {
        for (;;) {
          const { done, value } = await steps.next();
          if (done) {
            state = "over";
            return encodeFrames([toCreationFrame("done", { is_cut: value.isCut })]);
          }
          if (value.length > 0) return encodeFrames(value.map((step) => toCreationFrame("field", step)));
        }
      } catch (error) {
        state = "over";
        return encodeFrames([toCreationFrame("error", createErrorBody(error, requestId))]);
      }
    },
    close: () => writing.cancel(),
  };
}

function cardRoutes(services: Services) {
  const maxCardBytes = services.config.maxUploadBodyBytes;
  // A card and its documents change together, under one lock.
  const locks = new KeyedMutex();
  return createRouter()
    .openapi(schema.listRoute, async (c) => {
      const { characters } = await services.characters();
      const { view, ...query } = c.req.valid("query");
      const isPaged = query.limit !== undefined || query.cursor !== undefined;
      const { items, next_cursor } = await characters.list(isPaged ? { limit: 100, ...query } : query);
      const body = view === "full"
        ? await openResponseStream(c, listPieces(characters.readWithCards(items), isPaged ? next_cursor : undefined))
        : listText(items, isPaged ? next_cursor : undefined);
      return passRawResponse(c.body(body, 200, { "Content-Type": "application/json" }));
    })
    .openapi(schema.foldersRoute, async (c) => {
      const { characters } = await services.characters();
      return c.json(await characters.listFolders(), 200);
    })
    .openapi(schema.getRoute, async (c) => {
      const { characters } = await services.characters();
      return await sendCharacter(services, c, await characters.get(c.req.valid("param").id), 200);
    })
    .openapi(schema.putRoute, async (c) => {
      const { characters } = await services.characters();
      const { id } = c.req.valid("param");
      return await locks.run(id, async () => {
        const expected = await toExpected(services, id, parsePrecondition(c.req.valid("header")));
        const { card, documents } = await readCardBody(characters.codec, c.req.valid("json"));
        const saved = await characters.put(id, card, expected);
        if (documents !== undefined) {
          await (await services.documentUses()).put("character", saved.character.id, documents);
        }
        return await sendCharacter(services, c, saved, saved.isNew ? 201 : 200);
      });
    })
    .openapi(schema.deleteRoute, async (c) => {
      const { characters } = await services.characters();
      const { id } = c.req.valid("param");
      await characters.remove(id, await toExpected(services, id, parsePrecondition(c.req.valid("header"))));
      return c.body(null, 204);
    })
    .openapi(schema.avatarRoute, async (c) => {
      const { avatars } = await services.characters();
      if ((c.req.queries("w")?.length ?? 0) > 1) {
        throw new AppError("invalid_request", "The query has more than one width (w). Send one");
      }
      const { w } = c.req.valid("query");
      const png = await avatars.read(c.req.valid("param").id, w === undefined ? undefined : Number(w));
      return passRawResponse(c.body(png, 200, { "Content-Type": "image/png" }));
    })
    .openapi(schema.expressionsRoute, async (c) => {
      const { expressions } = await services.characters();
      return c.json(await expressions.list(c.req.valid("param").id), 200);
    })
    .openapi(schema.expressionRoute, async (c) => {
      const { expressions } = await services.characters();
      const { id, n } = c.req.valid("param");
      const { bytes, type } = await expressions.read(id, n);
      return passRawResponse(c.body(bytes, 200, { "Content-Type": type }));
    })
    .openapi(schema.putAvatarRoute, async (c) => {
      const { characters } = await services.characters();
      const image = await readImage(c);
      const { id } = c.req.valid("param");
      const expected = await toExpected(services, id, parsePrecondition(c.req.valid("header")));
      return await sendCharacter(services, c, await characters.setAvatar(id, image, { expected }), 200);
    })
    .openapi(schema.versionsRoute, async (c) => {
      const { characters } = await services.characters();
      return c.json((await characters.listVersions(c.req.valid("param").id)).map(toVersionJson), 200);
    })
    .openapi(schema.versionRoute, async (c) => {
      const { characters } = await services.characters();
      const { id, n } = c.req.valid("param");
      const { card, text, png } = await characters.getVersion(id, n);
      const body = toCardJson({ card, has_avatar: png !== undefined }, text);
      return passRawResponse(c.body(body, 200, { "Content-Type": "application/json" }));
    })
    .openapi(schema.versionAvatarRoute, async (c) => {
      const { characters } = await services.characters();
      const { id, n } = c.req.valid("param");
      const png = await characters.getVersionAvatar(id, n, c.req.valid("query").w);
      return passRawResponse(c.body(png, 200, { "Content-Type": "image/png" }));
    })
    .openapi(schema.restoreVersionRoute, async (c) => {
      const { characters } = await services.characters();
      const { id, n } = c.req.valid("param");
      const expected = await toExpected(services, id, parsePrecondition(c.req.valid("header")));
      return await sendCharacter(services, c, await characters.restoreVersion(id, n, expected), 200);
    })
    .openapi(schema.importRoute, async (c) => {
      const { characters } = await services.characters();
      // The API document doesn't name the part of the form.
      if (c.req.valid("query").reuse) {
        // A repetition finds what the first request has made.
        const { isPresent, ...imported } = await readStreamedUpload(
          c,
          (file) => characters.importStream(file, maxCardBytes, { reusesSame: true }),
        );
        return await sendCharacter(services, c, imported, isPresent ? 200 : 201);
      }
      const id = await services.idempotency.run({
        kind: "character",
        key: c.req.valid("header")["idempotency-key"],
        exists: (id) => characters.get(id).then(() => true, () => false),
        make: (id) =>
          readStreamedUpload(c, async (file) => {
            const content = new HashedStream(file);
            await characters.importStream(content.read(), maxCardBytes, { id });
            return content.digest();
          }),
        readFingerprint: () => readStreamedUpload(c, (file) => new HashedStream(file).drain()),
      });
      return await sendCharacter(services, c, await characters.get(id), 201);
    })
    .openapi(schema.restoreAppRoute, async (c) => {
      const { builtinCharacter } = await services.characters();
      return await sendCharacter(services, c, await builtinCharacter.restore(), 200);
    })
    .openapi(schema.exportRoute, async (c) => {
      const { characters } = await services.characters();
      const { format, image_metadata } = c.req.valid("query");
      const file = await exportCard(characters, c.req.valid("param").id, format, {
        maxImportBytes: maxCardBytes,
        keepsImageMetadata: image_metadata === "keep",
      });
      if (file.isTooLargeToImport) c.header("X-Parlor-Warning", TOO_LARGE_TO_IMPORT);
      const headers = {
        "Content-Type": file.contentType,
        "Content-Length": String(file.sizeBytes),
        "Content-Disposition": formatAttachmentHeader(file.fileName),
      };
      if (c.req.raw.method === "HEAD") {
        file[Symbol.dispose](); // without a body, nothing else would close it
        return passRawResponse(c.body(null, 200, headers));
      }
      return passRawResponse(c.body(await openResponseStream(c, createBody(file)), 200, headers));
    })
    .openapi(schema.portraitRoute, async (c) => {
      const portraits = await services.portraits();
      return c.json(await portraits.getStatus(c.req.valid("param").id), 200);
    })
    .openapi(schema.generateRoute, async (c) => {
      const portraits = await services.portraits();
      return c.json(toJobJson(await portraits.start(c.req.valid("param").id)), 202);
    });
}

/** Responds with a character and the version of its card. */
async function sendCharacter(
  services: Services,
  c: AppContext,
  read: ReadCharacter,
  status: 200 | 201,
): Promise<never> {
  const documents = (await services.documentUses()).get("character", read.character.id);
  const body = toCharacterJson(read, {
    ...(documents.length > 0 && { documents }),
    ...toLedgerField(read.ledger ?? createWholeCardLedger(read.character.card)),
  });
  const headers = { "Content-Type": "application/json", ETag: formatOwnerEtag(read.version, documents) };
  return passRawResponse(c.body(body, status, headers));
}

/** Converts preconditions on the character's ETag to preconditions on its card file. */
async function toExpected(
  services: Services,
  id: string,
  precondition: Precondition | undefined,
): Promise<Precondition | undefined> {
  return precondition && toVersionPrecondition(precondition, (await services.documentUses()).get("character", id));
}

/** Returns the card in a body that was checked or is too long for that, and the documents next to it. */
async function readCardBody(codec: CardCodec, body: unknown) {
  if (!(body instanceof UnparsedJson)) {
    return { card: toReadCard(parseCard(unwrapCard(body))), documents: schema.toCharacterDocuments(body) };
  }
  const { card, checked } = await codec.parseBody(body, (rest) => {
    parseBody(schema.CardBody, rest);
    return schema.toCharacterDocuments(rest);
  });
  return { card, documents: checked };
}

async function* createBody(file: ExportedCard): AsyncGenerator<Uint8Array> {
  using own = file;
  yield* own.stream();
}

function listText(items: readonly string[], cursor: string | null | undefined): string {
  return `${listBegin(cursor)}${items.join(",")}${listEnd(cursor)}`;
}

async function* listPieces(
  items: AsyncIterable<string | Uint8Array>,
  cursor: string | null | undefined,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  let separator = listBegin(cursor);
  for await (const item of items) {
    if (typeof item === "string") yield encoder.encode(separator + item);
    else {
      yield encoder.encode(separator);
      yield item as Uint8Array<ArrayBuffer>;
    }
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
