/** Entries of a lorebook in the page. */
import { expect, test } from "vitest";
import { EMPTY_ENTRY, getEntryTitle } from "../../../../static/src/state/documents/lorebook_entries.ts";

test.each([
  ["its own", { comment: " Winter ", name: "Snow", keys: ["ice"] }, "Winter"],
  ["its name", { comment: " ", name: "Snow", keys: ["ice"] }, "Snow"],
  ["its keys", { keys: ["ice", "snow"], content: "It is cold." }, "ice, snow"],
  ["the start of its content", { content: "\nIt is cold.\nVery cold." }, "It is cold."],
  ["content after decorators", { content: "@@depth 4\n@@role user\nIt is cold." }, "It is cold."],
  [
    "whole words of a long line",
    { content: "It is very cold today in the whole of the north of the country, and it snows." },
    "It is very cold today in the whole of the north of the…",
  ],
  ["nothing", {}, ""],
])("the title of an entry: %s", (_, fields, title) => {
  expect(getEntryTitle({ ...EMPTY_ENTRY, ...fields })).toBe(title);
});
