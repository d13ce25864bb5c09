/** Explains failed calls to a model server. */
import type { ErrorBody } from "../../api/types.ts";
import { texts } from "../../texts/texts.ts";
import { isUnreachable } from "../connections/connection_state.ts";

/** Returns what failed, in one line that names the connection or the model. */
export function getFailureTitle(error: ErrorBody | undefined): string {
  if (!error?.upstream) return texts.chat.failed;
  const { kind, connection_name, model } = error.upstream;
  const { failures } = texts.chat;
  // A server without any model fails before one is chosen.
  const isNamed = kind !== "not_found" || model !== "";
  const known = isNamed && Object.hasOwn(failures, kind) ? kind as keyof typeof failures : undefined;
  return failures[known ?? (isUnreachable(kind) ? "away" : "other")](connection_name, model);
}

/** Returns when the server wants the next request, as a time of this page; 0 if it didn't say. */
export function findRetryTime(error: ErrorBody | undefined, failedAtMs: number): number {
  const seconds = error?.upstream?.retry_after_s;
  return seconds === undefined ? 0 : failedAtMs + seconds * 1000;
}

/** Failures that may pass by themselves. The others need a change. */
const MAY_PASS = new Set(["refused", "unreachable", "unresolved", "starting"]);

/** Failures because of the connection's address. */
const BAD_ADDRESS = new Set(["unresolved", "certificate", "protocol", "blocked", "redirect", "web_page"]);

/** The kind of help. */
export type Remedy = "key" | "overflow" | "model" | "wait" | "none";

/** Returns what helps against a failure. */
export function chooseRemedy(kind: string): Remedy {
  if (kind === "auth") return "key";
  if (kind === "overflow") return "overflow";
  if (kind === "not_found") return "model";
  return MAY_PASS.has(kind) ? "wait" : "none";
}

/** Returns whether the connection's address may be wrong. */
export function isAddressSuspect(kind: string): boolean {
  return BAD_ADDRESS.has(kind);
}
