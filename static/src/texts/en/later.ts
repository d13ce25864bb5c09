/** Texts of screens that are opened on demand, which load them: models, characters, voices, who has access. */
import { access } from "./access.ts";
import { characters } from "./characters.ts";
import { models } from "./models.ts";
import { voice } from "./voice.ts";

/** The areas that the first load does without. */
export const later = { ...models, ...characters, ...access, ...voice };
