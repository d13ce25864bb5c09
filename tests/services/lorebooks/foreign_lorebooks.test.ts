import { expect, test } from "vitest";
import { parseLorebook } from "../../../services/lorebooks/lorebook_file.ts";

const NOVELAI = {
  lorebookVersion: 5,
  entries: [
    {
      text: "The mill is haunted.",
      displayName: "Mill",
      id: "a",
      keys: ["mill", "windmill"],
      enabled: true,
      forceActivation: false,
      contextConfig: { budgetPriority: 400 },
      searchRange: 1000,
    },
    { text: "Both.", displayName: "Pair", keys: ["wind & water"], forceActivation: true, contextConfig: {} },
    { text: "Off.", displayName: "Off", keys: ["/o+ff/"], enabled: true, category: "c", contextConfig: {} },
  ],
  settings: { orderByKeyLocations: false },
  categories: [{ id: "c", enabled: false }],
};
const AGNAI = {
  kind: "memory",
  name: "Farm",
  entries: [{ name: "Mill", entry: "The mill is haunted.", keywords: ["mill"], weight: 3 }],
};
const RISU = {
  type: "risu",
  ver: 1,
  data: [{
    key: "mill, windmill",
    comment: "Mill",
    content: "The mill is haunted.",
    insertorder: 100,
    alwaysActive: true,
  }],
};

test.each([
  ["NovelAI", NOVELAI, { keys: ["mill", "windmill"], insertion_order: 400, constant: false }],
  ["Agnai", AGNAI, { keys: ["mill"], insertion_order: 3 }],
  ["RisuAI", RISU, { keys: ["mill", "windmill"], constant: true }],
])("reads a book of %s with its keys", (_, json, entry) => {
  expect(parseLorebook(json).book.entries[0]).toMatchObject({
    content: "The mill is haunted.",
    enabled: true,
    ...entry,
  });
});

test("keeps NovelAI's pairs of keys, its patterns, disabled categories, and fields without an equivalent", () => {
  const { book } = parseLorebook(NOVELAI);
  expect(book.entries.slice(1)).toMatchObject([
    { keys: ["wind"], secondary_keys: ["water"], selective: true, constant: true, extensions: { selectiveLogic: 3 } },
    { keys: ["/o+ff/"], use_regex: true, enabled: false },
  ]);
  expect(book.entries[0]!.extensions).toMatchObject({ novelai: { searchRange: 1000 } });
  expect(book.extensions).toMatchObject({ novelai: { settings: { orderByKeyLocations: false } } });
});
