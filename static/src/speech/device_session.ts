/** The device during a conversation by voice: its screen stays on, and its media keys belong to the conversation. */

/** Keeps the screen on. Returns a function that ends it. */
export function keepAwake(): () => void {
  const { document, navigator } = globalThis.window;
  let lock: WakeLockSentinel | undefined;
  let isOver = false;
  const request = async () => {
    // The browser releases it whenever the page is hidden.
    if (isOver || document.visibilityState !== "visible") return;
    try {
      lock = await navigator.wakeLock?.request("screen");
      if (isOver) await lock?.release();
    } catch {
      // Refused, for example to save power: the conversation works without it.
    }
  };
  document.addEventListener("visibilitychange", request);
  void request();
  return () => {
    isOver = true;
    document.removeEventListener("visibilitychange", request);
    lock?.release().catch(() => {});
  };
}

/** What the keys of a headset do. */
export interface MediaKeys {
  /** Play or pause. */
  toggle(): void;
  stop(): void;
}

const TOGGLES = ["play", "pause", "togglemicrophone", "hangup"] as const;

/** Takes the media keys. Returns a function that gives them back to the player. */
export function takeMediaKeys({ toggle, stop }: MediaKeys): () => void {
  const media = globalThis.navigator.mediaSession;
  const set = (action: string, handler: (() => void) | null) => {
    try {
      media?.setActionHandler(action as MediaSessionAction, handler);
    } catch {
      // Browsers know different actions.
    }
  };
  for (const action of TOGGLES) set(action, toggle);
  set("stop", stop);
  return () => {
    for (const action of [...TOGGLES, "stop"]) set(action, null);
  };
}
