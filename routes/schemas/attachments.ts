/** Attachments in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import { ATTACHMENT_NAME, createAttachmentUrl } from "../../services/attachments/attachment_rows.ts";
import { isDeviceName } from "../../services/storage/ids.ts";
import type { Attachment } from "../../services/attachments/attachments.ts";
import { ERRORS, IfMatch, json, RangeHeaders } from "./common.ts";
import { createRestoreVersionRoute, createVersionsRoute, VersionNumber } from "./versions.ts";

const NameParams = z.object({
  name: z.string().regex(
    ATTACHMENT_NAME,
    "a name has 1 to 128 letters, digits, _, - or, after the first character, dots",
  )
    .refine((name) => !isDeviceName(name), "a name can't be a device name of Windows")
    .openapi({ example: "heron.png" }),
});

const AttachmentResponse = z.object({
  name: z.string(),
  url: z.string().openapi({ example: "/api/attachments/heron.png" }),
  content_type: z.enum([
    ...["image/png", "image/jpeg", "image/webp", "image/gif"] as const,
    ...["audio/wav", "audio/webm", "audio/ogg", "audio/mp4", "audio/mpeg", "audio/flac"] as const,
  ]),
  size_bytes: z.number().int(),
  width: z.number().int().optional().openapi({ description: "For images, in pixels, as shown" }),
  height: z.number().int().optional(),
}).openapi("Attachment");

const file = z.string().openapi({ format: "binary" });
const content = { "image/*": { schema: file }, "audio/*": { schema: file } };
const tags = ["Attachments"];

/** Store. */
export const putRoute = createRoute({
  method: "put",
  path: "/api/attachments/{name}",
  tags,
  summary:
    "Store an image (PNG, JPEG, WebP, GIF) or a recording (WAV, WebM, Ogg, MP4, MP3, FLAC), recognized by its content",
  request: {
    params: NameParams,
    headers: IfMatch,
    body: { required: true, content },
  },
  responses: {
    200: json(AttachmentResponse, "Stored, replacing the previous file; the ETag is its version"),
    201: json(AttachmentResponse, "Stored"),
    ...ERRORS,
  },
});

/** Fetch. */
export const getRoute = createRoute({
  method: "get",
  path: "/api/attachments/{name}",
  tags,
  summary: "Fetch an image or a recording",
  request: { params: NameParams, headers: RangeHeaders },
  responses: {
    200: {
      description: "The file with its content type",
      content,
    },
    206: { description: "The part of it that Range requests", content },
    ...ERRORS,
  },
});

/** Remove. */
export const deleteRoute = createRoute({
  method: "delete",
  path: "/api/attachments/{name}",
  tags,
  summary: "Move an image or a recording to the trash",
  request: { params: NameParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

const versioned = {
  path: "/api/attachments/{name}",
  what: "an image or a recording",
  tags,
  params: NameParams,
  numbered: NameParams.extend({ n: VersionNumber }),
  response: AttachmentResponse,
};

/** Earlier versions. */
export const versionsRoute = createVersionsRoute(versioned);

/** Restore one. */
export const restoreVersionRoute = createRestoreVersionRoute(versioned);

/** Converts an attachment to its JSON form. */
export function toAttachmentJson({ name, type, sizeBytes, widthPx, heightPx }: Attachment) {
  return {
    name,
    url: createAttachmentUrl(name),
    content_type: type,
    size_bytes: sizeBytes,
    width: widthPx,
    height: heightPx,
  };
}
