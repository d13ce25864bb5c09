/** The settings that follow the user from device to device, including the language. */
import type { Settings } from "../../api/types.ts";
import { signal } from "@preact/signals";
import type { Api } from "../../api/api.ts";
import { asApiError } from "../../api/client.ts";
import { ChangeQueue } from "./change_queue.ts";
import { LatestRead } from "./latest_read.ts";
import { findLanguage, setLanguage } from "../../texts/texts.ts";
import type { Device } from "./device.ts";

/** The server's settings. Appearance comes from the device's copy, which is available at once. */
export class Preferences {
  /** Undefined until the server has responded. */
  readonly settings = signal<Settings | undefined>(undefined);
  readonly #api: Api;
  readonly #device: Device;
  readonly #browserLanguages: readonly string[];
  /** Changes in flight: an older response must not undo them. */
  #pending = 0;
  /** Changes since the page was opened. */
  #changeCount = 0;
  readonly #changes = new ChangeQueue();
  readonly #reads = new LatestRead();
  /** A read that arrived while a change was in flight may have had what another device changed after that. */
  #isBehind = false;

  /** @param browserLanguages The browser's preferred languages, best first. */
  constructor(api: Api, device: Device, browserLanguages: readonly string[]) {
    this.#api = api;
    this.#device = device;
    this.#browserLanguages = browserLanguages;
  }

  /** Applies the chosen language. @throws {Error} if it can't be loaded. */
  showLanguage(): Promise<void> {
    return setLanguage(findLanguage([this.#device.language.peek(), ...this.#browserLanguages]));
  }

  /** Follows changes of the language. Returns a function that stops. */
  open(): () => void {
    return this.#device.language.subscribe(() => {
      // A language that can't be loaded now is loaded on the next visit.
      this.showLanguage().catch(() => {});
    });
  }

  /** Loads the settings. A failure keeps what is shown. */
  async refresh(): Promise<void> {
    const changes = this.#changeCount;
    try {
      await this.#reads.run(() => this.#api.getSettings(), (settings) => {
        // Read before a change, it may lack it.
        if (changes !== this.#changeCount) return;
        if (this.#pending > 0) this.#isBehind = true;
        else this.#take(settings);
      });
    } catch {
      // The device's copy stays; the next change or reconnection asks again.
    }
  }

  /** Changes settings: applied at once, reverted if the server refuses. @throws {ApiError} */
  async change(changes: Partial<Settings>): Promise<void> {
    const before = this.settings.peek();
    if (before) this.settings.value = { ...before, ...changes };
    this.#device.apply(changes);
    this.#pending++;
    this.#changeCount++;
    try {
      const settings = await this.#changes.run(() => this.#api.changeSettings(changes));
      if (this.#pending === 1) this.#take(settings);
    } catch (thrown) {
      if (before && !asApiError(thrown).isQueued) this.#take(before);
      throw thrown;
    } finally {
      this.#pending--;
      if (this.#pending === 0 && this.#isBehind) {
        this.#isBehind = false;
        void this.refresh();
      }
    }
  }

  #take(settings: Settings): void {
    this.settings.value = settings;
    this.#device.apply(settings);
  }
}
