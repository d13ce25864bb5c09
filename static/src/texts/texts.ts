/** The texts in the language that is shown. */
import { en, type Texts } from "./en.ts";

/** The catalogue in use. */
export const texts: Texts = en;
