/**
 * The state of a connection: whether it works, its model, the model's capabilities, and its download.
 */
import type { ChatOptions, Connection, Health, Job } from "../../api/types.ts";
import type { Check } from "./connections.ts";
import { formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";

/** The state of a connection. `busy`: the server responded but refused for now; `failing`: any other failure. */
export interface ConnectionState {
  kind: "unknown" | "running" | "good" | "bad" | "refused" | "starting" | "busy" | "failing";
  /** Why it doesn't work, in the server's words. */
  error?: string;
}

/** Kinds of failures in which no server responded. */
const UNREACHABLE = new Set([
  ...["refused", "unresolved", "unreachable", "certificate", "protocol", "blocked", "timeout", "redirect", "web_page"],
]);

const STATES: Record<string, ConnectionState["kind"]> = {
  auth: "refused",
  credit: "refused",
  starting: "starting",
  rate: "busy",
  overloaded: "busy",
};

/** True if no server responded, so that it may come back by itself. */
export function isUnreachable(kind: string): boolean {
  return UNREACHABLE.has(kind);
}

/**
 * Returns the state. The last test of this page counts most, then the last call. The server's health check only knows
 * whether the active connection responds, so it doesn't excuse a refusal.
 */
export function getConnectionState(
  connection: Connection,
  check: Check | undefined,
  health: Health["connection"] | undefined,
): ConnectionState {
  if (check?.kind === "running") return { kind: "running" };
  if (check?.kind === "done") {
    const { reachable, authorized, error } = check.result;
    if (!reachable) return { kind: "bad", error };
    return authorized && error === undefined ? { kind: "good" } : { kind: "refused", error };
  }
  const probe = connection.active && health?.id === connection.id ? health : undefined;
  const failure = connection.last_call?.ok === false ? connection.last_call.error : undefined;
  if (failure) {
    const isOver = probe?.reachable === true && isUnreachable(failure.kind);
    if (!isOver) return { kind: getFailureState(failure.kind), error: failure.message };
  }
  if (probe) return probe.reachable ? { kind: "good" } : { kind: "bad", error: probe.error };
  return { kind: connection.last_call?.ok ? "good" : "unknown" };
}

function getFailureState(kind: string): ConnectionState["kind"] {
  return isUnreachable(kind) ? "bad" : STATES[kind] ?? "failing";
}

/** Returns the color of a state: `unknown` while it can still turn out well. */
export function getStateTone({ kind }: ConnectionState): "good" | "bad" | "unknown" {
  if (kind === "good") return "good";
  return kind === "unknown" || kind === "running" || kind === "starting" ? "unknown" : "bad";
}

/** Returns the model that answers in a chat; undefined if the server chooses and hasn't been asked yet. */
export function findReplyModel(
  connection: Connection | undefined,
  chatModel: ChatOptions["model"],
): string | undefined {
  return chatModel || connection?.model || connection?.resolved_model || undefined;
}

/** How much a model thinks, as a chat option. */
export type Effort = "none" | "minimal" | "low" | "medium" | "high";

/** How the thinking of a model can be set. */
export interface Thinking {
  /** True if thinking can be switched off. */
  hasOff: boolean;
  /** From little to much; empty if it can only be switched on. */
  efforts: readonly Effort[];
  /** Tokens that an effort lets the model think with, where the server takes a number. */
  budgets: Readonly<Record<string, number>>;
  /** False if the server reports nothing about the model, which may then ignore the setting. */
  isKnown: boolean;
}

const EFFORTS: readonly Effort[] = ["minimal", "low", "medium", "high"];

/** Returns how the model's thinking can be set; undefined if it can't. */
export function findThinking(connection: Connection | undefined, model: string | undefined): Thinking | undefined {
  const dialect = connection?.dialect;
  const known = model === undefined ? undefined : findByName(dialect?.models, model, connection?.kind);
  const thinks = known?.thinking;
  const isRefused = connection?.refused.some((each) =>
    each.field === "reasoning_effort" && each.model === model && each.sent_as === undefined
  );
  if (!dialect || thinks === false || isRefused) return undefined;
  const offered: readonly string[] = dialect.thinking.efforts;
  const hasOff = dialect.thinking.switch || offered.includes("none");
  const efforts = EFFORTS.filter((effort) => offered.includes(effort));
  if (!hasOff && efforts.length === 0) return undefined;
  // Ollama reports for each model whether it thinks.
  const isKnown = thinks === true || (dialect.name !== "generic" && connection?.kind !== "ollama");
  return { hasOff, efforts, budgets: known?.adaptive ? {} : dialect.thinking.budgets ?? {}, isKnown };
}

/** Finds the entry of a model. Ollama's names without a tag mean the tag `latest`. */
function findByName<T>(
  entries: Readonly<Record<string, T>> | undefined,
  model: string,
  kind: Connection["kind"] | undefined,
): T | undefined {
  if (entries === undefined) return undefined;
  const name = Object.keys(entries).find((name) => isSameModelName(name, model, kind));
  return entries[model] ?? (name === undefined ? undefined : entries[name]);
}

/** Returns whether two names mean the same model of a connection. */
export function isSameModelName(one: string, other: string, kind: Connection["kind"] | undefined): boolean {
  const withTag = (name: string) => kind !== "ollama" || /:[^/]*$/.test(name) ? name : `${name}:latest`;
  return withTag(one) === withTag(other);
}

/** Effort for models whose thinking can only be switched on or off. */
const ON: Effort = "medium";

/** Returns the values of `reasoning_effort` to choose from, besides the model's default. */
export function listEfforts({ hasOff, efforts }: Thinking): Effort[] {
  return [...(hasOff ? ["none" as const] : []), ...(efforts.length > 0 ? efforts : [ON])];
}

/** Returns the name of an effort; without steps, thinking is just on. */
export function getEffortName(thinking: Thinking, effort: Effort): string {
  return effort === ON && thinking.efforts.length === 0 ? texts.chat.effort.on : texts.chat.effort[effort];
}

/** As `getEffortName`, with the tokens that the effort allows where the server has such a limit. */
export function getEffortLabel(thinking: Thinking, effort: Effort): string {
  const name = getEffortName(thinking, effort);
  const budget = thinking.budgets[effort];
  return budget === undefined ? name : texts.chat.effort.budget(name, formatNumber(budget));
}

/** Kind of these jobs. */
const MODEL_PULL = "model_pull";

/** Returns whether a job has not ended. */
export function isUnfinished(state: Job["state"]): boolean {
  return state === "queued" || state === "running" || state === "verifying";
}

/** Finds the download of a model that is under way at a connection. */
export function findModelPull(
  jobs: readonly Job[],
  { id, kind }: Pick<Connection, "id" | "kind">,
  model: string,
): Job | undefined {
  return jobs.find((job) =>
    job.kind === MODEL_PULL && isUnfinished(job.state) && getPullConnection(job) === id &&
    isSameModelName(job.title, model, kind)
  );
}

/** Returns the id of the connection whose server downloads; undefined if the job isn't such a download. */
export function getPullConnection({ kind, detail }: Job): string | undefined {
  if (kind !== MODEL_PULL || typeof detail !== "object" || detail === null) return undefined;
  const { connection_id: id } = detail as { connection_id?: unknown };
  return typeof id === "string" ? id : undefined;
}
