/** Ends answers that are still being sent once the right to them is gone: a stream outlives the check at its beginning. */
import type { Identity } from "./access_policy.ts";

/** How soon a file removed by hand ends the streams it gave the right to. */
const LOOK_EVERY_MS = 1_000;

/** Streams under way whose right can end. */
export interface OpenStreams {
  /**
   * Watches over one stream.
   *
   * @param rpId Of the host it was asked for under.
   * @returns `undefined` where the right cannot end. Else a signal that fires when it does; release it at the stream's end.
   */
  watch(identity: Identity, rpId: string): { signal: AbortSignal; release(): void } | undefined;
  /** Looks now: something was revoked or enrolled. */
  look(): Promise<void>;
  close(): void;
}

/** @param stillCounts Tells whether what opened a stream would open it now. */
export function createOpenStreams(stillCounts: (identity: Identity, rpId: string) => Promise<boolean>): OpenStreams {
  const streams = new Set<{ identity: Identity; rpId: string; ending: AbortController }>();
  let timer: ReturnType<typeof setInterval> | undefined;

  async function look(): Promise<void> {
    for (const stream of [...streams]) {
      if (await stillCounts(stream.identity, stream.rpId)) continue;
      stream.ending.abort();
      release(stream);
    }
  }

  function release(stream: Parameters<typeof streams.delete>[0]): void {
    streams.delete(stream);
    if (streams.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    watch(identity, rpId) {
      if (identity.method === null && identity.bypass !== "grace") return undefined;
      const stream = { identity, rpId, ending: new AbortController() };
      streams.add(stream);
      timer ??= setInterval(look, LOOK_EVERY_MS);
      return { signal: stream.ending.signal, release: () => release(stream) };
    },
    look,
    close() {
      clearInterval(timer);
      streams.clear();
    },
  };
}
