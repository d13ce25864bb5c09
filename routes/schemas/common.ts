/** Schemas that several resources share. */
import { z } from "@hono/zod-openapi";
import { ATTACHMENT_URL } from "../../services/attachments/attachment_rows.ts";
import { isDeviceName, isPathWord } from "../../services/storage/ids.ts";
import { yieldIfTickUsedUp, yieldToEventLoop } from "../../services/async/delay.ts";

/** An id of any resource, chosen by the client or made by the server. */
export const Id = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "an id has 1 to 64 letters, digits, _ or -")
  .refine((id) => !isPathWord(id), "this word can't be an id: it's part of a path")
  .refine((id) => !isDeviceName(id), "an id can't be a device name of Windows").openapi({ example: "c1" });

/** `{id}` in a path. */
export const IdParams = z.object({ id: Id });

/**
 * A key as people paste it: outer white space and a `Bearer ` in front are dropped. It goes into a header, where white space
 * or a line break inside would be refused, or end the header, at each call.
 */
export const ApiKey = z.string().max(10_000).transform((key) => key.trim().replace(/^bearer\s+/i, ""))
  // deno-lint-ignore no-control-regex -- those are what is looked for
  .refine((key) => !/[\s\u0000-\u001f\u007f]/.test(key), "a key has no spaces or line breaks inside")
  .openapi({ type: "string" });

/** ISO 8601, UTC. */
export const Time = z.string().openapi({ format: "date-time" });

/** `?variants=1`: messages come with all their texts. */
export const WithVariants = z.enum(["0", "1"]).default("0").openapi({
  description: "1: messages that have several texts come with all of them, as variants",
});

/** List entry of an item that can't be decrypted. */
export const Unreadable = z.object({ code: z.literal("unreadable") });

/** Fields that are added to chat requests, of a connection or a preset. What the request sets itself wins. */
export const ExtraBody = z.record(z.string().min(1).max(200), z.unknown())
  .refine((body) => ["model", "messages", "stream"].every((field) => !(field in body)), {
    message: "it can't set model, messages or stream",
  })
  .refine((body) => JSON.stringify(body).length <= 100_000, "it is longer than 100,000 characters")
  .openapi({
    description: "Fields added to each chat request; the request's win over the preset's, those over the connection's",
    additionalProperties: true,
  });

/** Which call to a model server failed. */
export const UpstreamFailure = z.object({
  kind: z.string().openapi({
    description: "auth, credit, not_found, overflow, rate, starting, overloaded, timeout, unreachable, refused, …",
  }),
  status: z.number().int().optional(),
  connection_id: z.string(),
  connection_name: z.string(),
  model: z.string(),
  retry_after_s: z.number().int().optional().openapi({ description: "When the server accepts requests again" }),
}).openapi("UpstreamFailure");

/** The one error body. */
const ErrorAnswer = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    request_id: z.string(),
    issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    trash_id: z.string().optional().openapi({ description: "With in_trash: the trash item to restore" }),
    upstream: UpstreamFailure.optional().openapi({ description: "With failed calls to a model server" }),
  }),
}).openapi("Error");

/** The answers every route can give beside its own. */
export const ERRORS = {
  default: { description: "The one error body", content: { "application/json": { schema: ErrorAnswer } } },
};

/** Headers of a checked write. */
export const IfMatch = z.object({
  "if-match": z.string().optional().openapi({
    description: "ETags of which the stored version must have one, or * for any; without it the write overwrites",
  }),
  "if-none-match": z.string().optional().openapi({
    description: "ETags of which the stored version must have none, or * to create and never overwrite",
  }),
});

/** Headers of a read of a file that may be had in part. */
export const RangeHeaders = z.object({
  "range": z.string().optional().openapi({ example: "bytes=0-65535" }),
  "if-range": z.string().optional().openapi({ description: "ETag of which the part is wanted, else the whole file" }),
});

/** Describes a JSON answer or body. */
export function json<T extends z.ZodType>(schema: T, description: string) {
  return { description, content: { "application/json": { schema } } };
}

/**
 * Describes a JSON body that has to be there.
 *
 * The validator asks schemas asynchronously, for which zod parses half as fast and a document of a thousand messages takes
 * milliseconds more. None of ours waits for anything: one that did would throw here.
 */
export function jsonBody<T extends z.ZodType>(schema: T) {
  const parsedAtOnce = schema.clone();
  parsedAtOnce.safeParseAsync = (value, params) => Promise.resolve(parsedAtOnce.safeParse(value, params));
  return { required: true, content: { "application/json": { schema: parsedAtOnce } } };
}

/** Describes a JSON body that may be left out. */
export function optionalJsonBody<T extends z.ZodType>(schema: T) {
  return { required: false, content: { "application/json": { schema } } };
}

/** A list up to this length is checked at once: messages take a thousandth of a millisecond each, a pause a whole one. */
const SHORT_LIST = 2_000;
/** Items of a longer one that are checked together. */
const ITEMS_AT_ONCE = 500;

/**
 * Describes a JSON body with a list that may be long: that is checked a piece at a time, so that a conversation of ten
 * thousand messages holds up no reply that is being streamed.
 *
 * @param list Name of the field; an array in the schema.
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
    await yieldToEventLoop(); // To read the JSON took its turn already.
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

/** Returns the path of an error within a part of a list as a path of the whole list. */
function toWholePath([index, ...rest]: PropertyKey[], list: string, at: number): PropertyKey[] {
  return [list, at + Number(index), ...rest];
}

/** Bytes, in the words of the API document. */
export const BINARY = { type: "string", format: "binary" } as const;

/** Describes a form with a file alone. Read by the handler, as `namedFile` is. */
export const oneFile = {
  required: true,
  content: {
    "multipart/form-data": { schema: { type: "object" as const, properties: { file: BINARY }, required: ["file"] } },
  },
};

/** Describes a form with a file and what to call it. Read by the handler: a schema of zod here would have the body read twice. */
export const namedFile = {
  required: true,
  content: {
    "multipart/form-data": {
      schema: {
        type: "object" as const,
        required: ["file"],
        properties: {
          file: BINARY,
          name: { type: "string" as const, description: "What to call it where it says no name; else the file's" },
        },
      },
    },
  },
};

/** The fields that a schema names, without the index signature of a loose object: reading any other field is a type error. */
export type NamedFields<T> = { [Key in keyof T as string extends Key ? never : Key]: T[Key] };

/** URL path of an attachment. */
export const AttachmentUrl = z.string().regex(ATTACHMENT_URL, "an attachment is /api/attachments/NAME").openapi({
  example: "/api/attachments/forest.jpg",
});

/** One page of a list. */
export interface PageJson<Item> {
  items: Item[];
  /** Leads to the next page; null at the end of the list. */
  next_cursor: string | null;
}

/** What the one error body contains. */
export type ErrorJson = z.output<typeof ErrorAnswer>["error"];
