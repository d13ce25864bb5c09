/** A call that got no answer at all, as an error of the model server. */
import { connectFinding } from "../http/connect_error.ts";
import { UpstreamError } from "../http/upstream_error.ts";

/** Makes the error for a call that got no answer at all. */
export function connectFailure(place: string, thrown: unknown): UpstreamError {
  const { kind, finding } = connectFinding(thrown);
  return new UpstreamError(kind, `Cannot reach the model at "${place}": ${finding}`);
}
