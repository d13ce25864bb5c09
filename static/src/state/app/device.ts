/**
 * What this device remembers: the folded sidebar, the last chat, and a copy of the appearance settings, so that the
 * page looks right before the server has responded.
 */
import type { Settings } from "../../api/types.ts";
import { batch, effect, signal } from "@preact/signals";

/** The color theme. */
export type Theme = Settings["theme"];

/** Text sizes, in percent. */
export const TEXT_SIZE = { min: 85, max: 140, step: 5 } as const;

/** Default hue of the accent color, in degrees of OKLCH. */
const DEFAULT_HUE = 225;

const KEY = "parlor.device";

interface StoredDevice {
  theme: Theme;
  textSize: number;
  isSerif: boolean;
  hue: number;
  language: string | null;
  isSidebarFolded: boolean;
  isPairingDeclined: boolean;
  foldedFolders: string[];
  isNotifying: boolean;
  lastConversationId: string | undefined;
}

/** Returns the browser's storage; undefined if it is disabled. */
export function findStorage(window: Window): Storage | undefined {
  try {
    return window.localStorage;
  } catch {
    return undefined;
  }
}

/** The settings of the device. Each change is stored and applied at once. */
export class Device {
  readonly theme = signal<Theme>("system");
  readonly textSize = signal(100);
  readonly isSerif = signal(false);
  readonly hue = signal(DEFAULT_HUE);
  /** The chosen language; null follows the browser. */
  readonly language = signal<string | null>(null);
  readonly isSidebarFolded = signal(false);
  /** The user declined to create a passkey on this device. */
  readonly isPairingDeclined = signal(false);
  /** Folders whose chats are hidden in the list. */
  readonly foldedFolders = signal<readonly string[]>([]);
  /** Notify when a reply ends while the page is hidden. Each browser grants this separately. */
  readonly isNotifying = signal(false);
  readonly lastConversationId = signal<string | undefined>(undefined);
  #storage: Storage | undefined;

  constructor(storage: Storage | undefined) {
    this.#storage = storage;
    const stored = readStored(storage);
    if (stored.theme === "light" || stored.theme === "dark") this.theme.value = stored.theme;
    if (typeof stored.textSize === "number") this.textSize.value = clampSize(stored.textSize);
    if (typeof stored.hue === "number" && stored.hue >= 0 && stored.hue <= 360) this.hue.value = stored.hue;
    if (typeof stored.language === "string") this.language.value = stored.language;
    this.isSerif.value = stored.isSerif === true;
    this.isSidebarFolded.value = stored.isSidebarFolded === true;
    this.isPairingDeclined.value = stored.isPairingDeclined === true;
    this.isNotifying.value = stored.isNotifying === true;
    if (Array.isArray(stored.foldedFolders)) {
      this.foldedFolders.value = stored.foldedFolders.filter((name) => typeof name === "string");
    }
    if (typeof stored.lastConversationId === "string") this.lastConversationId.value = stored.lastConversationId;
  }

  /** Applies the appearance settings of the user. */
  apply(settings: Partial<Settings>): void {
    batch(() => {
      if (settings.theme !== undefined) this.theme.value = settings.theme;
      if (settings.font_size !== undefined) this.textSize.value = clampSize(settings.font_size);
      if (settings.serif !== undefined) this.isSerif.value = settings.serif;
      if (settings.accent_hue !== undefined) this.hue.value = settings.accent_hue ?? DEFAULT_HUE;
      if (settings.language !== undefined) this.language.value = settings.language;
    });
  }

  /** Applies the settings to the root element and stores every change. Returns a function that stops. */
  open(root: HTMLElement): () => void {
    return effect(() => {
      const stored: StoredDevice = {
        theme: this.theme.value,
        textSize: this.textSize.value,
        isSerif: this.isSerif.value,
        hue: this.hue.value,
        language: this.language.value,
        isSidebarFolded: this.isSidebarFolded.value,
        isPairingDeclined: this.isPairingDeclined.value,
        foldedFolders: [...this.foldedFolders.value],
        isNotifying: this.isNotifying.value,
        lastConversationId: this.lastConversationId.value,
      };
      root.dataset.theme = stored.theme;
      root.dataset.reading = stored.isSerif ? "serif" : "sans";
      root.style.setProperty("--accent-hue", String(stored.hue));
      root.style.setProperty("--reading-scale", String(stored.textSize / 100));
      try {
        this.#storage?.setItem(KEY, JSON.stringify(stored));
      } catch {
        // If storage is full or refuses, only these settings are lost.
      }
    });
  }
}

function clampSize(percent: number): number {
  return Math.min(TEXT_SIZE.max, Math.max(TEXT_SIZE.min, percent));
}

function readStored(storage: Storage | undefined): Partial<StoredDevice> {
  try {
    const value: unknown = JSON.parse(storage?.getItem(KEY) ?? "{}");
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
