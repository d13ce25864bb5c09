/** Downloads of models by Ollama servers, among the jobs. */
import type { Connection, Job } from "../../api/types.ts";
import { isSameModelName } from "./connection_state.ts";

/** Kind of these jobs. */
export const MODEL_PULL = "model_pull";

/** Returns whether a job has not ended. */
export function isUnderWay(state: Job["state"]): boolean {
  return state === "queued" || state === "running" || state === "verifying";
}

/** Finds the download of a model that is under way at a connection. */
export function findModelPull(
  jobs: readonly Job[],
  { id, kind }: Pick<Connection, "id" | "kind">,
  model: string,
): Job | undefined {
  return jobs.find((job) =>
    job.kind === MODEL_PULL && isUnderWay(job.state) && getPullConnection(job) === id &&
    isSameModelName(job.title, model, kind)
  );
}

/** Returns the id of the connection whose server downloads; undefined if the job isn't such a download. */
export function getPullConnection({ kind, detail }: Job): string | undefined {
  if (kind !== MODEL_PULL || typeof detail !== "object" || detail === null) return undefined;
  const { connection_id: id } = detail as { connection_id?: unknown };
  return typeof id === "string" ? id : undefined;
}
