/** How a saved connection stands, by what is known of it. */
import type { Connection, Health } from "../../api/types.ts";
import type { Check } from "../../state/connections/connections.ts";

/** The state in one word, and the last error where there is one. */
export interface ConnectionState {
  kind: "unknown" | "running" | "good" | "bad" | "refused";
  error?: string;
}

/** The last test counts most; without one, the one in use is known from the server's own look at it. */
export function stateOf(
  connection: Connection,
  check: Check | undefined,
  health: Health["connection"] | undefined,
): ConnectionState {
  if (check?.kind === "running") return { kind: "running" };
  if (check?.kind === "done") {
    const { reachable, authorized, error } = check.verdict;
    if (!reachable) return { kind: "bad", error };
    return authorized && error === undefined ? { kind: "good" } : { kind: "refused", error };
  }
  if (!connection.active || health?.id !== connection.id) return { kind: "unknown" };
  return health.reachable ? { kind: "good" } : { kind: "bad", error: health.error };
}
