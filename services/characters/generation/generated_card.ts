/** The card of what a model wrote. */
import { type Card, cardOf } from "../card/card.ts";
import type { CharacterFields } from "./character_fields.ts";

/** A card has to have a name, also where its writer gave none. */
const NAMELESS = "Unnamed";

/** Makes a card; examples get the line that every example begins with. */
export function createdCard(fields: CharacterFields): Card {
  const { name, tags, mes_example: examples = "", ...texts } = fields;
  const hasMarks = examples.trim() === "" || /<START>/i.test(examples);
  return cardOf({
    spec: "chara_card_v3",
    spec_version: "3.0",
    data: {
      ...texts,
      name: name?.trim() || NAMELESS,
      mes_example: hasMarks ? examples : `<START>\n${examples}`,
      tags: tags ?? [],
    },
  });
}
