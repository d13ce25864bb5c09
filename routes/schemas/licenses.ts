/** Licence notices on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, json } from "./common.ts";

const Notice = z.object({
  name: z.string(),
  version: z.string(),
  licence: z.string().openapi({ description: "As the package names it", example: "MIT" }),
  text: z.string().openapi({ description: "Of its licence files; empty where it brings none" }),
}).openapi("LicenceNotice");

/** `GET /api/licences` */
export const licencesRoute = createRoute({
  method: "get",
  path: "/api/licences",
  tags: ["Upkeep"],
  summary: "The licence of every package inside; from source, of every package installed",
  responses: { 200: json(z.array(Notice), "By name"), ...ERRORS },
});

/** The license notice of a package. */
export type LicenseNoticeJson = z.output<typeof Notice>;
