/** Ends streaming responses when their client loses access, because a stream outlives the check at its start. */
import type { Identity } from "./access_policy.ts";

/** How soon deleting a credential file ends the streams that depend on it. */
const LOOK_EVERY_MS = 1_000;

/** Open streams whose access can be revoked. */
export interface OpenStreams {
  /**
   * Watches over one stream.
   *
   * @param rpId Of the host it was asked for under.
   * @returns `undefined` if access can't end. Otherwise a signal that fires when it does; release it when the stream ends.
   */
  watch(identity: Identity, rpId: string): { signal: AbortSignal; release(): void } | undefined;
  /** Checks all streams now, after something was revoked or registered. */
  look(): Promise<void>;
  close(): void;
}

/** @param stillCounts Returns whether an identity still has access. */
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
