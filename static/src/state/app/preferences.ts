/** The settings that follow the person from device to device, and the language of the page among them. */
import type { Settings } from "../../api/types.ts";
import { signal } from "@preact/signals";
import type { Api } from "../../api/api.ts";
import { languageOf, showLanguage } from "../../texts/texts.ts";
import type { Device } from "./device.ts";

/** The settings as the server has them; looks are shown from the device's copy, which is here at once. */
export class Preferences {
  /** Undefined until the server has answered. */
  readonly settings = signal<Settings | undefined>(undefined);
  readonly #api: Api;
  readonly #device: Device;
  readonly #browserLanguages: readonly string[];
  /** Changes that are on their way: an answer from before them must not undo what is shown. */
  #pending = 0;

  /** @param browserLanguages What the browser would like, best first. */
  constructor(api: Api, device: Device, browserLanguages: readonly string[]) {
    this.#api = api;
    this.#device = device;
    this.#browserLanguages = browserLanguages;
  }

  /** Puts the chosen language to use. @throws {Error} when it cannot be loaded. */
  showLanguage(): Promise<void> {
    return showLanguage(languageOf([this.#device.language.peek(), ...this.#browserLanguages]));
  }

  /** Changes the language whenever another one is chosen. Gives what ends that. */
  open(): () => void {
    return this.#device.language.subscribe(() => {
      // A language that cannot be loaded now is loaded with the next visit.
      this.showLanguage().catch(() => {});
    });
  }

  /** Reads the settings; what is shown stays when that fails. */
  async refresh(): Promise<void> {
    try {
      const settings = await this.#api.getSettings();
      if (this.#pending === 0) this.#take(settings);
    } catch {
      // The device's copy goes on; the next change or reconnection asks again.
    }
  }

  /** Changes some settings: shown at once, put back when the server refuses. @throws {ApiError} */
  async change(changes: Partial<Settings>): Promise<void> {
    const before = this.settings.peek();
    if (before) this.settings.value = { ...before, ...changes };
    this.#device.apply(changes);
    this.#pending++;
    try {
      const settings = await this.#api.changeSettings(changes);
      if (this.#pending === 1) this.#take(settings);
    } catch (thrown) {
      if (before) this.#take(before);
      throw thrown;
    } finally {
      this.#pending--;
    }
  }

  #take(settings: Settings): void {
    this.settings.value = settings;
    this.#device.apply(settings);
  }
}
