/** What this device remembers for itself: looks, the folded sidebar, the last chat. Everything else follows the person. */
import { effect, signal } from "@preact/signals";

/** How the page looks. */
export type Theme = "system" | "light" | "dark";

/** Reading size in percent of the normal one. */
export const TEXT_SIZES = [85, 92, 100, 110, 120, 130, 140] as const;

/** Hue of the accent colour where nothing else is chosen, in degrees of OKLCH. */
export const DEFAULT_HUE = 225;

const KEY = "parlor.device";

interface Kept {
  theme: Theme;
  textSize: number;
  isSerif: boolean;
  hue: number;
  isSidebarFolded: boolean;
  lastConversationId: string | undefined;
}

/** Opens the browser's storage; undefined where it is switched off. */
export function findStorage(window: Window): Storage | undefined {
  try {
    return window.localStorage;
  } catch {
    return undefined;
  }
}

/** The device's settings; each change is kept and shown at once. */
export class Device {
  readonly theme = signal<Theme>("system");
  readonly textSize = signal(100);
  readonly isSerif = signal(false);
  readonly hue = signal(DEFAULT_HUE);
  readonly isSidebarFolded = signal(false);
  readonly lastConversationId = signal<string | undefined>(undefined);
  #storage: Storage | undefined;

  constructor(storage: Storage | undefined) {
    this.#storage = storage;
    const kept = readKept(storage);
    if (kept.theme === "light" || kept.theme === "dark") this.theme.value = kept.theme;
    if (TEXT_SIZES.some((size) => size === kept.textSize)) this.textSize.value = kept.textSize!;
    if (typeof kept.hue === "number" && kept.hue >= 0 && kept.hue <= 360) this.hue.value = kept.hue;
    this.isSerif.value = kept.isSerif === true;
    this.isSidebarFolded.value = kept.isSidebarFolded === true;
    if (typeof kept.lastConversationId === "string") this.lastConversationId.value = kept.lastConversationId;
  }

  /** Shows the settings on the page's root and keeps every change. Gives what ends that. */
  open(root: HTMLElement): () => void {
    return effect(() => {
      const kept: Kept = {
        theme: this.theme.value,
        textSize: this.textSize.value,
        isSerif: this.isSerif.value,
        hue: this.hue.value,
        isSidebarFolded: this.isSidebarFolded.value,
        lastConversationId: this.lastConversationId.value,
      };
      root.dataset.theme = kept.theme;
      root.dataset.reading = kept.isSerif ? "serif" : "sans";
      root.style.setProperty("--accent-hue", String(kept.hue));
      root.style.setProperty("--reading-scale", String(kept.textSize / 100));
      try {
        this.#storage?.setItem(KEY, JSON.stringify(kept));
      } catch {
        // A full or refusing storage costs the memory of these settings, nothing else.
      }
    });
  }
}

function readKept(storage: Storage | undefined): Partial<Kept> {
  try {
    const value: unknown = JSON.parse(storage?.getItem(KEY) ?? "{}");
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
