/** English: the default language, which defines the keys of all catalogues. */
import { chat } from "./chat.ts";
import { shell } from "./shell.ts";
import { connections } from "./connections.ts";
import type { later } from "./later.ts";

const first = {
  ...shell,
  ...chat,
  ...connections,
};

/** The texts that every language must have. */
export type Texts = typeof first & typeof later;

/** All texts of the page. Those of later.ts are there after `loadLater`, which screens that load on demand wait for. */
export const en = first as Texts;

/** Loads the texts of screens that load on demand. @throws {Error} if their file can't be loaded. */
export async function loadLater(): Promise<void> {
  const { later } = await import("./later.ts");
  Object.assign(en, later, { personas: { ...first.personas, ...later.personas } });
}
