import { expect, test } from "vitest";
import { splitByWords } from "../../../../static/src/state/app/search.ts";

const marked = (text: string, query: string) =>
  splitByWords(text, query).map(({ text, isHit }) => isHit ? `[${text}]` : text).join("");

test.each([
  ["The Duck and the duckling", "duck", "The [Duck] and the [duck]ling"],
  ["one two three", "three one", "[one] two [three]"],
  ["a phrase here, a word", '"a phrase" word', "[a phrase] here, a [word]"],
  ["(a+b)* costs $5", "(a+b)* $5", "[(a+b)*] costs [$5]"],
  ["cat category", "cat category", "[cat] [category]"],
  ["夜は静かに", "静か", "夜は[静か]に"],
  ["nothing", "", "nothing"],
  ["<b>bold</b>", "<b>", "[<b>]bold</b>"],
])("in %j, %j highlights %j", (text, query, expected) => expect(marked(text, query)).toBe(expected));
