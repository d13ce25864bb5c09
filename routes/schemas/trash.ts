/** The trash on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, json, Time } from "./common.ts";

/** Longer than other ids: some are made of the removed thing's own. */
const TrashId = z.string().regex(/^[A-Za-z0-9_-]{1,100}$/, "an id has 1 to 100 letters, digits, _ or -");

const TrashItem = z.object({
  id: TrashId,
  kind: z.string().openapi({ description: "conversation, message, …" }),
  title: z.string(),
  deleted_at: Time,
}).openapi("TrashItem");
const tags = ["Trash"];

/** What is in it. */
export const listRoute = createRoute({
  method: "get",
  path: "/api/trash",
  tags,
  summary: "List items deleted in the last seven days, newest first",
  responses: { 200: json(z.array(TrashItem), "What can be restored"), ...ERRORS },
});

/** Bring one thing back. */
export const restoreRoute = createRoute({
  method: "post",
  path: "/api/trash/{id}/restore",
  tags,
  summary: "Restore an item; 409 if its place is gone or taken",
  request: { params: z.object({ id: TrashId }) },
  responses: { 204: { description: "Restored" }, ...ERRORS },
});

/** Remove all for good. */
export const emptyRoute = createRoute({
  method: "delete",
  path: "/api/trash",
  tags,
  summary: "Empty the trash permanently",
  responses: { 204: { description: "The trash is empty" }, ...ERRORS },
});

/** A deleted item that can be restored. */
export type TrashItemJson = z.output<typeof TrashItem>;
