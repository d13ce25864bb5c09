/** What the node tells by itself: one JSON object a line, of which only these few fields matter here. */
import { asString } from "../json/type_guards.ts";

/** One message; what is `undefined` did not change. */
export interface Notice {
  /** Sign-in address that was asked for. */
  browseUrl?: string;
  /** Words meant for a person. */
  errorMessage?: string;
  /** Everything that is wrong now, by its code. */
  health?: ReadonlyMap<string, string>;
}

/** Longest line; what is asked for is far shorter. */
const MAX_LINE = 4 * 1024 * 1024;

/** Reads messages until the stream ends. @throws {Error} for a line without end, and whatever the stream throws. */
export async function* readNotices(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<Notice> {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    if (rest.length > MAX_LINE) throw new Error("The node sends a message that does not end");
    for (const line of lines) if (line.trim() !== "") yield noticeOf(line);
  }
}

/** A line that is no JSON still is a sign that something changed. */
function noticeOf(line: string): Notice {
  let found: Record<string, unknown>;
  try {
    found = JSON.parse(line) ?? {};
  } catch {
    return {};
  }
  return {
    browseUrl: asString(found.BrowseToURL),
    errorMessage: asString(found.ErrMessage),
    health: healthOf(found.Health),
  };
}

function healthOf(health: unknown): Map<string, string> | undefined {
  if (typeof health !== "object" || health === null) return undefined;
  const warnings = (health as { Warnings?: unknown }).Warnings;
  const entries = typeof warnings === "object" && warnings !== null ? Object.entries(warnings) : [];
  return new Map(entries.map(([code, warning]) => [code, asString(warning?.Text) ?? ""]));
}
