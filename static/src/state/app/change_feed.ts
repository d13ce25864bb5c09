/**
 * The stream of change events.
 *
 * One stream serves all tabs of a browser: the tab that holds the lock reads it and notifies the others. A tab reads its own
 * where the browser has or gives no locks and channels, and where no other tab answers.
 */
import type { ChangeEvent } from "../../api/types.ts";
import { signal } from "@preact/signals";
import { ApiError, readEvents } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";
import { getRetryDelayMs, pause } from "./backoff.ts";
import { openChannel } from "./browser_parts.ts";

const NAME = "parlor.events";

/** Longest silence before the server counts as lost; keep-alives are more frequent. */
const SILENCE_MS = 60_000;

/** A silence after which a page that is looked at again opens a new connection: a sleeping device may have lost it. */
const SLEEP_MS = 30_000;

/** How long a server may take to restart, after it said so, before the page says that it's away, in milliseconds. */
const RESTART_MS = 15_000;

/** How long a tab without the lock waits for the one that holds it, in milliseconds. */
const ANSWER_MS = 5000;

type FeedMessage = { event: ChangeEvent } | { isLive: boolean; build?: string } | { isRefused: true };
/** What tabs say to each other besides: "Does anybody read?", "Yes". */
type TabMessage = FeedMessage | { isAsking: true } | { isReading: true; build?: string };

/** The callbacks of a feed. */
export interface FeedListener {
  onEvent(event: ChangeEvent): void;
  /** The stream begins; earlier changes may have been missed. */
  onConnected(wasLive: boolean): void;
  /** The server has this build of the page. Called with each connection. */
  onBuild(build: string): void;
  /** The server refuses this browser. */
  onRefused(): void;
}

/** The feed of one tab. */
export class ChangeFeed {
  /** False while the server can't be reached. */
  readonly isLive = signal(true);
  #api: Api;
  #listener: FeedListener;

  constructor(api: Api, listener: FeedListener) {
    this.#api = api;
    this.#listener = listener;
  }

  /** Starts listening. Returns a function that stops. */
  open(): () => void {
    const abort = new AbortController();
    const { signal } = abort;
    const channel = openChannel(NAME);
    let isLeading = false;
    let isHeard = false;
    let build: string | undefined;
    let alone: AbortController | undefined;
    const readAlone = () => {
      if (isLeading || alone || signal.aborted) return;
      alone = new AbortController();
      signal.addEventListener("abort", () => alone?.abort());
      void this.#read(alone.signal, (message) => this.#handle(message));
    };
    const send = (message: FeedMessage) => {
      if ("isLive" in message) build = message.build ?? build;
      channel?.postMessage(message);
      this.#handle(message);
    };
    const lead = () => {
      isLeading = true;
      alone?.abort();
      return this.#read(signal, send);
    };
    const follow = ({ data }: MessageEvent<TabMessage>) => {
      if ("isAsking" in data) {
        if (isLeading) channel?.postMessage({ isReading: true, build });
        return;
      }
      isHeard = true;
      if ("isReading" in data) {
        if (data.build !== undefined) this.#listener.onBuild(data.build);
      } else if (!alone) this.#handle(data);
    };
    const locks = findLocks();
    let timer: ReturnType<typeof setTimeout> | undefined;
    if (locks && channel) {
      channel.onmessage = follow;
      // The request fails if the page closes its feed while another tab holds the lock, or if the browser refuses locks.
      requestLock(locks, signal, lead).catch(readAlone);
      channel.postMessage({ isAsking: true });
      timer = setTimeout(() => isHeard || readAlone(), ANSWER_MS);
    } else readAlone();
    return () => {
      abort.abort();
      clearTimeout(timer);
      channel?.close();
    };
  }

  #handle(message: FeedMessage): void {
    if ("event" in message) return this.#listener.onEvent(message.event);
    if ("isRefused" in message) return this.#listener.onRefused();
    const wasLive = this.isLive.value;
    this.isLive.value = message.isLive;
    if (message.isLive) this.#listener.onConnected(wasLive);
    if (message.build !== undefined) this.#listener.onBuild(message.build);
  }

  async #read(signal: AbortSignal, send: (message: FeedMessage) => void): Promise<void> {
    let restartsUntilMs = 0;
    for (let attempt = 0; !signal.aborted; attempt++) {
      let retryAfterMs = 0;
      const connection = new AbortController();
      const end = () => connection.abort();
      signal.addEventListener("abort", end);
      let silence = setTimeout(end, SILENCE_MS);
      let heardAtMs = Date.now();
      const onLook = () => {
        if (document.visibilityState === "visible" && Date.now() - heardAtMs > SLEEP_MS) end();
      };
      document.addEventListener("visibilitychange", onLook);
      globalThis.addEventListener("online", onLook);
      try {
        const response = await this.#api.openEvents(connection.signal);
        send({ isLive: true, build: response.headers.get("x-parlor-build") ?? undefined });
        for await (const events of readEvents(response)) {
          attempt = 0;
          clearTimeout(silence);
          silence = setTimeout(end, SILENCE_MS);
          heardAtMs = Date.now();
          for (const event of events) {
            if (event.event === "restarting") restartsUntilMs = Date.now() + RESTART_MS;
            const change = parseChange(event.data);
            if (change) send({ event: change });
          }
        }
      } catch (thrown) {
        if (thrown instanceof ApiError) {
          // The server refused (401, 403). Retrying every few seconds changes nothing, and the page shows why.
          if (!thrown.isTransient && thrown.status < 500) return send({ isRefused: true });
          retryAfterMs = thrown.retryAfterMs ?? 0;
        }
      } finally {
        clearTimeout(silence);
        signal.removeEventListener("abort", end);
        document.removeEventListener("visibilitychange", onLook);
        globalThis.removeEventListener("online", onLook);
      }
      if (signal.aborted) return;
      // One lost connection that returns at once is not worth a banner, nor is a restart.
      if (attempt > 0 && Date.now() > restartsUntilMs) send({ isLive: false });
      await pause(Math.max(getRetryDelayMs(attempt), retryAfterMs), signal);
    }
  }
}

function findLocks(): LockManager | undefined {
  try {
    return globalThis.navigator?.locks ?? undefined;
  } catch {
    return undefined;
  }
}

async function requestLock(locks: LockManager, signal: AbortSignal, lead: () => Promise<void>): Promise<void> {
  await locks.request(NAME, { signal }, lead);
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
