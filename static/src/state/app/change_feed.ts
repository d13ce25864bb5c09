/**
 * Word of what changed on the server. One stream serves all tabs of a browser: the tab that holds the lock reads it and tells
 * the others. Where locks are missing (plain HTTP off loopback) each tab reads its own.
 */
import type { ChangeEvent } from "../../api/types.ts";
import { signal } from "@preact/signals";
import { ApiError } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";
import { readEvents } from "../../api/event_stream.ts";
import { getRetryDelayMs, pause } from "./backoff.ts";

const NAME = "parlor.events";

/** The stream is silent for at most this long before its server counts as lost; keep-alives come oftener. */
const SILENCE_MS = 60_000;

type Told = { event: ChangeEvent } | { isLive: boolean } | { isRefused: true };

/** Who is told what. */
export interface FeedListener {
  onEvent(event: ChangeEvent): void;
  /** The stream begins: what changed before it did may have been missed. */
  onConnected(wasLive: boolean): void;
  /** The server will not talk to this browser any more. */
  onRefused(): void;
}

/** The browser's share of the stream of changes. */
export class ChangeFeed {
  /** False while the server cannot be reached. */
  readonly isLive = signal(true);
  #api: Api;
  #listener: FeedListener;

  constructor(api: Api, listener: FeedListener) {
    this.#api = api;
    this.#listener = listener;
  }

  /** Starts to listen. Gives what ends that. */
  open(): () => void {
    const abort = new AbortController();
    const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel(NAME) : undefined;
    if (channel) channel.onmessage = (message: MessageEvent<Told>) => this.#take(message.data);
    const tell = (told: Told) => {
      channel?.postMessage(told);
      this.#take(told);
    };
    const read = () => this.#read(abort.signal, tell);
    const locks: LockManager | undefined = globalThis.navigator?.locks;
    if (locks && channel) {
      // The request fails when the page closes its feed while another tab holds the lock.
      locks.request(NAME, { signal: abort.signal }, read).catch(() => {});
    } else void read();
    return () => {
      abort.abort();
      channel?.close();
    };
  }

  #take(told: Told): void {
    if ("event" in told) return this.#listener.onEvent(told.event);
    if ("isRefused" in told) return this.#listener.onRefused();
    const wasLive = this.isLive.value;
    this.isLive.value = told.isLive;
    if (told.isLive) this.#listener.onConnected(wasLive);
  }

  async #read(signal: AbortSignal, tell: (told: Told) => void): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      const connection = new AbortController();
      const end = () => connection.abort();
      signal.addEventListener("abort", end);
      let silence = setTimeout(end, SILENCE_MS);
      try {
        const response = await this.#api.openEvents(connection.signal);
        tell({ isLive: true });
        for await (const events of readEvents(response)) {
          attempt = 0;
          clearTimeout(silence);
          silence = setTimeout(end, SILENCE_MS);
          for (const event of events) {
            const change = parseChange(event.data);
            if (change) tell({ event: change });
          }
        }
      } catch (thrown) {
        // The server has said no (401, 403): asking every few seconds would change nothing. The page shows why.
        if (thrown instanceof ApiError && thrown.status >= 400 && thrown.status < 500) return tell({ isRefused: true });
      } finally {
        clearTimeout(silence);
        signal.removeEventListener("abort", end);
      }
      if (signal.aborted) return;
      // One lost connection that is back at once is nothing to speak of.
      if (attempt > 0) tell({ isLive: false });
      await pause(getRetryDelayMs(attempt), signal);
    }
  }
}

function parseChange(data: string): ChangeEvent | undefined {
  try {
    const value: Partial<ChangeEvent> | null = JSON.parse(data);
    if (typeof value?.kind !== "string" || typeof value.id !== "string") return undefined;
    return {
      kind: value.kind,
      id: value.id,
      revision: typeof value.revision === "number" ? value.revision : undefined,
    };
  } catch {
    return undefined;
  }
}
