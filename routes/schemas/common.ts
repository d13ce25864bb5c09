/** Schemas that several resources share. */
import { z } from "@hono/zod-openapi";
import { ATTACHMENT_URL } from "../../services/attachments/attachment_rows.ts";
import { isDeviceName, isPathWord } from "../../services/storage/ids.ts";
import { yieldIfTickUsedUp, yieldToEventLoop } from "../../services/async/delay.ts";
import { UnparsedJson } from "../../services/json/json_body.ts";

/** ID of any resource, chosen by the client or created by the server. */
export const Id = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "an ID has 1 to 64 letters, digits, _ or -")
  // One check: a document has thousands of IDs.
  .refine((id) => !isPathWord(id) && !isDeviceName(id), {
    error: ({ input }) =>
      isPathWord(String(input))
        ? "this word can't be an ID: it's part of a path"
        : "an ID can't be a device name of Windows",
  }).openapi({ example: "c1" });

/** `{id}` in a path. */
export const IdParams = z.object({ id: Id });

/**
 * An API key as people paste it: surrounding white space and a `Bearer ` prefix are removed. White space or a line
 * break inside would break the header of each call.
 */
export const ApiKey = z.string().max(10_000).transform((key) => key.trim().replace(/^bearer\s+/i, ""))
  // deno-lint-ignore no-control-regex -- those are what is looked for
  .refine((key) => !/[\s\u0000-\u001f\u007f]/.test(key), "a key must not contain spaces or line breaks")
  .openapi({ type: "string" });

/** ISO 8601, UTC. */
export const Time = z.string().openapi({ format: "date-time" });

/** `?variants=1`: messages include all their texts. */
export const WithVariants = z.enum(["0", "1"]).default("0").openapi({
  description: "1: messages with several texts include all of them, as variants",
});

/** List entry of an item that can't be decrypted. */
export const Unreadable = z.object({ code: z.literal("unreadable") });

/** One kind of thing in a file besides what was read from it. */
export const LedgerEntrySchema = z.object({
  kind: z.string(),
  count: z.number().int(),
  reason: z.string().openapi({ description: "An English sentence about the kind" }),
  examples: z.array(z.string()).optional().openapi({ description: "The first ones: names or places" }),
});

/** The ledger of an item whose file has more than Parlor uses. */
export const LedgerSchema = z.array(LedgerEntrySchema).openapi({
  description: "What it has besides what Parlor uses. Absent if Parlor uses all of it",
});

/** Returns the field `ledger` of an item; none for an empty ledger. */
export function toLedgerField(ledger: z.infer<typeof LedgerSchema>): { ledger?: z.infer<typeof LedgerSchema> } {
  return ledger.length === 0 ? {} : { ledger };
}

/**
 * Fields of a connection or a preset that are added to chat requests. Fields that the request sets itself take
 * precedence.
 */
export const ExtraBody = z.record(z.string().min(1).max(200), z.unknown())
  .refine((body) => ["model", "messages", "stream"].every((field) => !(field in body)), {
    message: "it must not set model, messages or stream",
  })
  .refine((body) => JSON.stringify(body).length <= 100_000, "it is longer than 100,000 characters")
  .openapi({
    description:
      "Fields added to each chat request; the request's fields take precedence over the preset's, and these over the connection's",
    additionalProperties: true,
  });

/** Which call to a model server failed. */
export const UpstreamFailureSchema = z.object({
  kind: z.string().openapi({
    description: "auth, credit, not_found, overflow, rate, starting, overloaded, timeout, unreachable, refused, …",
  }),
  status: z.number().int().optional(),
  connection_id: z.string(),
  connection_name: z.string(),
  model: z.string(),
  retry_after_s: z.number().int().optional().openapi({ description: "When the server accepts requests again" }),
}).openapi("UpstreamFailure");

/** Body of error responses. */
const ErrorResponse = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    request_id: z.string(),
    issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    trash_id: z.string().optional().openapi({ description: "With in_trash: the trash item to restore" }),
    upstream: UpstreamFailureSchema.optional().openapi({ description: "With failed calls to a model server" }),
  }),
}).openapi("Error");

/** Error responses that every route may send. */
export const ERRORS = {
  default: { description: "The error", content: { "application/json": { schema: ErrorResponse } } },
};

/** Headers of a conditional write. */
export const IfMatch = z.object({
  "if-match": z.string().optional().openapi({
    description:
      "ETags, one of which the stored version must have, or * for any version; without this header, the write overwrites",
  }),
  "if-none-match": z.string().optional().openapi({
    description: "ETags that the stored version must not have, or * to create without ever overwriting",
  }),
});

/** The header of a request that can be repeated without making anything twice. */
export const IdempotencyKey = z.object({
  "idempotency-key": z.string().min(1).max(255).optional().openapi({
    description: "Chosen by the client; a repetition of the request with the same key returns the first result",
  }),
});

/** Headers of a request for a file or a part of it. */
export const RangeHeaders = z.object({
  "range": z.string().optional().openapi({ example: "bytes=0-65535" }),
  "if-range": z.string().optional().openapi({
    description: "ETag of the version of which a part is requested; for another version, the whole file is sent",
  }),
});

/** Describes a JSON response or body. */
export function json<T extends z.ZodType>(schema: T, description: string) {
  return { description, content: { "application/json": { schema } } };
}

/**
 * Describes a required JSON body.
 *
 * The validator calls schemas asynchronously, which makes zod half as fast: a document with a thousand messages takes
 * milliseconds longer. No schema here is asynchronous, so this parses synchronously; an asynchronous schema would
 * throw. A handler that gets `UnparsedJson` checks it itself.
 */
export function jsonBody<T extends z.ZodType>(schema: T) {
  const parsedAtOnce = schema.clone();
  parsedAtOnce.safeParseAsync = (value, params) =>
    Promise.resolve(
      value instanceof UnparsedJson
        ? { success: true, data: value as z.output<T> }
        : parsedAtOnce.safeParse(value, params),
    );
  return { required: true, content: { "application/json": { schema: parsedAtOnce } } };
}

/** Describes an optional JSON body. */
export function optionalJsonBody<T extends z.ZodType>(schema: T) {
  return { required: false, content: { "application/json": { schema } } };
}

/** Maximum length of a list that is validated in one step: a message takes a microsecond, a pause a millisecond. */
const SHORT_LIST = 2_000;
/** Number of items of a longer list that are validated per step. */
const ITEMS_AT_ONCE = 500;

/**
 * Describes a JSON body with a list that may be long. The list is validated in steps, so that a conversation with ten
 * thousand messages doesn't delay replies that are being streamed.
 *
 * @param list Name of the field with the list, which is an array in the schema
 */
export function longJsonBody<T extends z.ZodObject>(schema: T, list: string) {
  const body = jsonBody(schema);
  const parsed = body.content["application/json"].schema;
  const parseAtOnce = parsed.safeParseAsync;
  const aroundList = schema.extend({ [list]: z.array(z.unknown()) });
  const pieces = schema.shape[list] as z.ZodType<unknown[]>;
  parsed.safeParseAsync = (async (value: unknown, params: Parameters<typeof parseAtOnce>[1]) => {
    const items: unknown = (value as Record<string, unknown> | null)?.[list];
    if (!Array.isArray(items) || items.length <= SHORT_LIST) return await parseAtOnce(value, params);
    await yieldToEventLoop(); // Parsing the JSON has already blocked for a while.
    const around = aroundList.safeParse(value);
    const issues = [...around.error?.issues ?? []];
    const read: unknown[] = [];
    for (let at = 0; at < items.length; at += ITEMS_AT_ONCE) {
      const piece = pieces.safeParse(items.slice(at, at + ITEMS_AT_ONCE));
      if (piece.success) read.push(...piece.data);
      else issues.push(...piece.error.issues.map((issue) => ({ ...issue, path: toWholePath(issue.path, list, at) })));
      await yieldIfTickUsedUp();
    }
    return issues.length === 0
      ? { success: true, data: { ...around.data, [list]: read } }
      : { success: false, error: new z.ZodError(issues) };
  }) as typeof parseAtOnce;
  return body;
}

/** Converts the path of an error within a part of a list to a path within the whole list. */
function toWholePath([index, ...rest]: PropertyKey[], list: string, at: number): PropertyKey[] {
  return [list, at + Number(index), ...rest];
}

/**
 * Describes a stream of server-sent events. As in OpenAPI 3.1, the schema describes one event.
 *
 * @param data What the data of the events is.
 */
export function eventStream(data: string) {
  const schema = z.object({
    event: z.string().optional(),
    data: z.string().openapi({ description: data }),
    id: z.string().optional(),
    retry: z.number().int().optional(),
  });
  return { "text/event-stream": { schema } };
}

/** Schema of bytes in the API document. */
export const BINARY = { type: "string", format: "binary" } as const;

/** Describes a form with only a file. The handler reads it, as with `namedFile`. */
export const oneFile = {
  required: true,
  content: {
    "multipart/form-data": { schema: { type: "object" as const, properties: { file: BINARY }, required: ["file"] } },
  },
};

/**
 * Describes a form with a file and a name. The handler reads it, because with a zod schema here the body would be read
 * twice.
 */
export const namedFile = {
  required: true,
  content: {
    "multipart/form-data": {
      schema: {
        type: "object" as const,
        required: ["file"],
        properties: {
          file: BINARY,
          name: {
            type: "string" as const,
            description: "Name to use if the content contains none; by default the name of the file",
          },
        },
      },
    },
  },
};

/**
 * The fields that a schema declares, without the index signature of a loose object, so that reading any other field is
 * a type error.
 */
export type NamedFields<T> = { [Key in keyof T as string extends Key ? never : Key]: T[Key] };

/** URL path of an attachment. */
export const AttachmentUrl = z.string().regex(ATTACHMENT_URL, "an attachment must have the form /api/attachments/NAME")
  .openapi({
    example: "/api/attachments/forest.jpg",
  });

/** One page of a list. */
export interface PageJson<Item> {
  items: Item[];
  /** Cursor of the next page; `null` at the end of the list. */
  next_cursor: string | null;
}

/** Content of the error body. */
export type ErrorJson = z.output<typeof ErrorResponse>["error"];

/** What happens to what an exported image says about itself. */
export const ImageMetadata = z.enum(["remove", "keep"]).default("remove").openapi({
  description: "Whether a PNG image keeps its place, camera and generation parameters",
});
