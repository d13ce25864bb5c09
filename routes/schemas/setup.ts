/** The first-run flag on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, json, optionalJsonBody } from "./common.ts";

const SetupStatus = z.object({
  completed: z.boolean(),
  in_container: z.boolean().describe("The server runs in a container: 127.0.0.1 is not the machine around it"),
  discover_hosts: z.array(z.string()).describe("Hosts that the search for model servers asks"),
}).openapi("SetupStatus");

/** Whether the wizard has ended. */
export const statusRoute = createRoute({
  method: "get",
  path: "/api/setup/status",
  tags: ["Setup"],
  summary: "Whether the first-run wizard has ended",
  responses: { 200: json(SetupStatus, "The flag"), ...ERRORS },
});

/** Mark the wizard finished. */
export const completeRoute = createRoute({
  method: "post",
  path: "/api/setup/complete",
  tags: ["Setup"],
  summary: "Mark the wizard dismissed or finished",
  request: { body: optionalJsonBody(z.object({})) },
  responses: { 200: json(SetupStatus, "The flag"), ...ERRORS },
});

/** The state of the first-run setup. */
export type SetupStatusJson = z.output<typeof SetupStatus>;
