/** Why a tool server wasn't saved. */
import type { ApiError } from "../../../api/client.ts";
import { ErrorNote, Notice } from "../../../components/Notice.tsx";
import { texts } from "../../../texts/texts.ts";

/** For a program that isn't allowed, how to allow it. */
export function SaveFailure({ error }: { error: ApiError }) {
  const t = texts.toolServers;
  if (error.code === "programs_not_allowed") {
    return <Notice tone="warning" title={t.programsOff}>{t.programsHow}</Notice>;
  }
  return <ErrorNote title={t.saveFailed} error={error} />;
}
