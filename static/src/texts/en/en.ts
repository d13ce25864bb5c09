/** English: the language the page begins with, and the keys that every other one has to have. */
import { chat } from "./chat.ts";
import { common } from "./common.ts";
import { connections } from "./connections.ts";
import { nav } from "./nav.ts";
import { palette } from "./palette.ts";
import { personas } from "./personas.ts";
import type { later } from "./later.ts";

const first = {
  ...common,
  ...nav,
  ...chat,
  ...connections,
  ...palette,
  ...personas,
};

/** What every language has to have. */
export type Texts = typeof first & typeof later;

/** All texts of the page; those of later.ts once `loadLater` is done, which screens opened on demand wait for. */
export const en = first as Texts;

/** Loads the texts of screens that are opened on demand. @throws {Error} when their file cannot be loaded. */
export async function loadLater(): Promise<void> {
  Object.assign(en, (await import("./later.ts")).later);
}
