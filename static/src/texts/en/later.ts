/** Texts of screens that are opened on demand, which load them: models, characters, who has access. */
import { access } from "./access.ts";
import { characters } from "./characters.ts";
import { models } from "./models.ts";

/** The areas that the first load does without. */
export const later = { ...models, ...characters, ...access };
