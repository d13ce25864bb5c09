/**
 * Parts of the browser that it may lack, refuse or never answer from: with site data blocked, in private windows, or on plain
 * HTTP off loopback. The page then works in its own tab.
 */

/** How long the page waits for a part that should answer at once, in milliseconds. */
const PART_TIMEOUT_MS = 5000;

/** Opens a channel to the other tabs of this browser; undefined if there is none. */
export function openChannel(name: string): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(name);
  } catch {
    return undefined;
  }
}

/**
 * Runs `work` while nothing else in this browser holds the lock; without usable locks at once.
 *
 * @param options.ifAvailable Doesn't wait; `work` then gets false if something else holds it.
 */
export async function withLock<T>(
  name: string,
  work: (isFree: boolean) => Promise<T>,
  options: Pick<LockOptions, "ifAvailable"> = {},
): Promise<T> {
  const waiting = new AbortController();
  const timer = setTimeout(() => waiting.abort(), PART_TIMEOUT_MS);
  let running: Promise<T> | undefined;
  const run = (isFree: boolean) => {
    clearTimeout(timer);
    return running ??= work(isFree);
  };
  const gaveUp = new Promise<void>((resolve) => waiting.signal.addEventListener("abort", () => resolve()));
  // Browsers allow either a signal or `ifAvailable`.
  const request = async () => {
    await navigator.locks.request(name, options, async (lock) => {
      if (!waiting.signal.aborted) await run(lock !== null);
    });
  };
  await Promise.race([request().catch(() => {}), gaveUp]);
  return await run(true);
}

/** Returns what registers service workers; undefined if the browser has or allows none. */
export function findServiceWorker(navigator: Navigator): ServiceWorkerContainer | undefined {
  try {
    return navigator.serviceWorker ?? undefined;
  } catch {
    return undefined;
  }
}

/** Rejects if a part doesn't answer. @throws {Error} after `PART_TIMEOUT_MS` */
export async function answerInTime<T>(answer: Promise<T>, timeoutMs = PART_TIMEOUT_MS): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("The browser doesn't answer")), timeoutMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Tells the service worker that the page of this URL is loaded again for its new code. It answers by the port. */
export interface ReloadNotice {
  reload: string;
}

/** Lets the service worker wait for a slow server: the page that it has cached is the old one. */
export async function announceReload({ location, navigator }: Window): Promise<void> {
  const worker = findServiceWorker(navigator)?.controller;
  if (!worker) return;
  const { port1, port2 } = new MessageChannel();
  const heard = new Promise((resolve) => port1.onmessage = resolve);
  worker.postMessage({ reload: location.href } satisfies ReloadNotice, [port2]);
  await answerInTime(heard).catch(() => {}); // A worker of an earlier build doesn't answer.
  port1.close();
}
