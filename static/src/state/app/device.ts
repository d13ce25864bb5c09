/**
 * Settings of this device: the folded sidebar, the last chat, a copy of the appearance settings, so that the page
 * looks right before the server has responded, and the token of a device that can't have a passkey.
 */
import type { Settings } from "../../api/types.ts";
import { batch, effect, signal } from "@preact/signals";

/** The color theme. */
export type Theme = Settings["theme"];

/** How messages look. */
type MessageLook = Pick<Settings, "color_speech" | "dim_actions" | "portrait_size" | "message_style">;

/** Widths of the portraits in chats, in CSS pixels; chat.css has them, too. */
export const PORTRAIT_PX = { small: 28, medium: 44, large: 72 } as const;

const DEFAULT_LOOK: MessageLook = {
  color_speech: true,
  dim_actions: true,
  portrait_size: "small",
  message_style: "plain",
};

/** Text sizes, in percent. */
export const TEXT_SIZE = { min: 85, max: 140, step: 5 } as const;

/** Default hue of the accent color, in degrees of OKLCH. */
const DEFAULT_HUE = 225;

const KEY = "parlor.device";

/** A model of a connection. */
export interface ModelChoice {
  connectionId: string;
  model: string;
}

/** Models in the list of recent ones. */
const RECENT_MODELS = 5;

interface StoredDevice {
  theme: Theme;
  textSize: number;
  isSerif: boolean;
  look: MessageLook;
  hue: number;
  language: string | null;
  isSidebarFolded: boolean;
  isPairingDeclined: boolean;
  foldedFolders: string[];
  isNotifying: boolean;
  lastConversationId: string | undefined;
  usesBrowserRecognition: boolean;
  isPushToTalk: boolean;
  isTalkInterruptible: boolean;
  favoriteModels: ModelChoice[];
  recentModels: ModelChoice[];
}

/** Returns the browser's storage; undefined if it is disabled. */
export function findStorage(window: Window): Storage | undefined {
  try {
    return window.localStorage ?? undefined;
  } catch {
    return undefined;
  }
}

/** The settings of the device. Each change is stored and applied at once. */
export class Device {
  readonly theme = signal<Theme>("system");
  readonly textSize = signal(100);
  readonly isSerif = signal(false);
  readonly look = signal(DEFAULT_LOOK);
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
  /** Dictate with the browser's own speech recognition, which may send the sound to its vendor. */
  readonly usesBrowserRecognition = signal(false);
  /** In conversations by voice, the microphone listens only while a button is held. */
  readonly isPushToTalk = signal(false);
  /** In conversations by voice, speaking interrupts the reading. */
  readonly isTalkInterruptible = signal(true);
  /** Models that the picker lists first. */
  readonly favoriteModels = signal<readonly ModelChoice[]>([]);
  /** Models chosen in the picker, newest first. */
  readonly recentModels = signal<readonly ModelChoice[]>([]);
  /** False if the browser stores nothing, so that these settings end with the tab. */
  readonly isKept: boolean;
  #storage: Storage | undefined;

  constructor(storage: Storage | undefined) {
    this.#storage = storage;
    this.isKept = storage !== undefined;
    const stored = readStored(storage);
    if (stored.theme === "light" || stored.theme === "dark") this.theme.value = stored.theme;
    if (typeof stored.textSize === "number") this.textSize.value = clampSize(stored.textSize);
    if (typeof stored.hue === "number" && stored.hue >= 0 && stored.hue <= 360) this.hue.value = stored.hue;
    if (typeof stored.language === "string") this.language.value = stored.language;
    this.isSerif.value = stored.isSerif === true;
    this.look.value = pickLook(stored.look ?? {}, DEFAULT_LOOK);
    this.isSidebarFolded.value = stored.isSidebarFolded === true;
    this.isPairingDeclined.value = stored.isPairingDeclined === true;
    this.isNotifying.value = stored.isNotifying === true;
    this.usesBrowserRecognition.value = stored.usesBrowserRecognition === true;
    this.isPushToTalk.value = stored.isPushToTalk === true;
    this.isTalkInterruptible.value = stored.isTalkInterruptible !== false;
    if (Array.isArray(stored.foldedFolders)) {
      this.foldedFolders.value = stored.foldedFolders.filter((name) => typeof name === "string");
    }
    if (typeof stored.lastConversationId === "string") this.lastConversationId.value = stored.lastConversationId;
    this.favoriteModels.value = readModels(stored.favoriteModels);
    this.recentModels.value = readModels(stored.recentModels);
  }

  /** Adds a model to the favorites, or removes it. */
  toggleFavorite(choice: ModelChoice): void {
    const others = this.favoriteModels.peek().filter((each) => !isSameModel(each, choice));
    const isAdded = others.length === this.favoriteModels.peek().length;
    this.favoriteModels.value = isAdded ? [...others, choice] : others;
  }

  /** Puts a model at the start of the recent ones. */
  rememberModel(choice: ModelChoice): void {
    const others = this.recentModels.peek().filter((each) => !isSameModel(each, choice));
    this.recentModels.value = [choice, ...others].slice(0, RECENT_MODELS);
  }

  /** Applies the appearance settings of the user. */
  apply(settings: Partial<Settings>): void {
    batch(() => {
      if (settings.theme !== undefined) this.theme.value = settings.theme;
      if (settings.font_size !== undefined) this.textSize.value = clampSize(settings.font_size);
      if (settings.serif !== undefined) this.isSerif.value = settings.serif;
      this.look.value = pickLook(settings, this.look.peek());
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
        look: this.look.value,
        hue: this.hue.value,
        language: this.language.value,
        isSidebarFolded: this.isSidebarFolded.value,
        isPairingDeclined: this.isPairingDeclined.value,
        foldedFolders: [...this.foldedFolders.value],
        isNotifying: this.isNotifying.value,
        lastConversationId: this.lastConversationId.value,
        usesBrowserRecognition: this.usesBrowserRecognition.value,
        isPushToTalk: this.isPushToTalk.value,
        isTalkInterruptible: this.isTalkInterruptible.value,
        favoriteModels: [...this.favoriteModels.value],
        recentModels: [...this.recentModels.value],
      };
      root.dataset.theme = stored.theme;
      root.dataset.reading = stored.isSerif ? "serif" : "sans";
      root.dataset.speech = stored.look.color_speech ? "colored" : "plain";
      root.dataset.actions = stored.look.dim_actions ? "dimmed" : "plain";
      root.dataset.portraits = stored.look.portrait_size;
      root.dataset.messages = stored.look.message_style;
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

/** Returns whether two choices are the same model of the same connection. */
export function isSameModel(one: ModelChoice, other: ModelChoice): boolean {
  return one.connectionId === other.connectionId && one.model === other.model;
}

/** Returns the same object if nothing differs, so that nothing renders again. */
function pickLook(stored: Partial<MessageLook>, before: MessageLook): MessageLook {
  const look = { ...before };
  if (typeof stored.color_speech === "boolean") look.color_speech = stored.color_speech;
  if (typeof stored.dim_actions === "boolean") look.dim_actions = stored.dim_actions;
  if (stored.portrait_size && stored.portrait_size in PORTRAIT_PX) look.portrait_size = stored.portrait_size;
  if (stored.message_style) look.message_style = stored.message_style === "bubbles" ? "bubbles" : "plain";
  return JSON.stringify(look) === JSON.stringify(before) ? before : look;
}

function readModels(value: unknown): ModelChoice[] {
  if (!Array.isArray(value)) return [];
  return value.filter((each: Partial<ModelChoice> | null) =>
    typeof each?.connectionId === "string" && typeof each.model === "string"
  );
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

const TOKEN_KEY = "parlor.token";

/** Returns the token of a device that can't have a passkey. Other devices use the session cookie. */
export function findDeviceToken(storage: Storage | undefined): string | undefined {
  return storage?.getItem(TOKEN_KEY) ?? undefined;
}

/** Saves the token, or deletes it. */
export function saveDeviceToken(storage: Storage | undefined, token: string | undefined): void {
  if (token === undefined) storage?.removeItem(TOKEN_KEY);
  else storage?.setItem(TOKEN_KEY, token);
}
