import { expect, test } from "vitest";
import { runInSteps } from "../../../services/async/delay.ts";
import { collectBookLedger, createBookLedger } from "../../../services/lorebooks/lorebook_ledger.ts";
import { parseLorebook } from "../../../services/lorebooks/lorebook_file.ts";

const kindsOf = (book: unknown) =>
  createBookLedger(parseLorebook(book).book).map(({ kind, count, examples }) => ({ kind, count, examples }));

test("a book whose entries are all used has no ledger", () => {
  expect(
    kindsOf({
      entries: [{ keys: ["fox"], content: "Red." }, { keys: [], content: "", enabled: true, constant: true }],
    }),
  )
    .toEqual([{ kind: "empty_entry", count: 1, examples: undefined }]);
  expect(kindsOf({ entries: [{ keys: ["fox"], content: "Red." }] })).toEqual([]);
});

test.each([
  ["V3", { entries: ["a fox", { keys: ["fox"], content: "Red." }, 7] }],
  ["World Info", { entries: { 0: "a fox", 1: { key: ["fox"], content: "Red." }, 2: 7 } }],
])("entries of a %s book that aren't objects stay in it and are named", (_, json) => {
  const { book } = parseLorebook(json);
  expect(book.entries).toHaveLength(1);
  expect(book.extensions).toEqual({ "parlor/unread": { entries: ["a fox", 7] } });
  expect(kindsOf(json)).toEqual([{ kind: "unreadable_entry", count: 2, examples: ['"a fox"'] }]);
  // Reading the stored form changes nothing.
  expect(parseLorebook(book).book).toEqual(book);
});

test("names what SillyTavern or NovelAI do with an entry and Parlor doesn't", () => {
  const entry = { key: ["fox"], content: "Red.", comment: "Fox", vectorized: true, automationId: "bark" };
  expect(kindsOf({ entries: { 0: entry } })).toEqual([
    { kind: "vectorized", count: 1, examples: ["Fox"] },
    { kind: "automation", count: 1, examples: ["bark"] },
  ]);
  const novelai = { lorebookVersion: 5, entries: [{ text: "Red.", keys: ["fox"], loreBiasGroups: [{ bias: 1 }] }] };
  expect(kindsOf(novelai)).toEqual([
    { kind: "foreign_book_settings", count: 1, examples: ["novelai: loreBiasGroups"] },
  ]);
});

test("names the macros of entries that Parlor doesn't have", () => {
  const entries = [{
    keys: ["{{fox}}"],
    content: "{{char}} {{if x}}{{upper::{{lower::a}}}}{{else}}{{.a}}{{/if}}{{ 1 }}",
  }];
  expect(kindsOf({ entries })).toEqual([
    { kind: "unknown_macro", count: 3, examples: ["{{fox}}", "{{lower}}", "{{upper}}"] },
  ]);
});

test("the ledger of a large book is made in steps, and is the same", async () => {
  const content = "{{char}} and {{odd}} walk. ".repeat(30);
  const { book } = parseLorebook({ entries: Array.from({ length: 9_000 }, () => ({ keys: ["fox"], content })) });
  let turns = 0;
  const count = () => void (isDone || (turns++, setImmediate(count)));
  let isDone = false;
  setImmediate(count);
  const found = await runInSteps(collectBookLedger(book));
  isDone = true;
  expect(turns).toBeGreaterThan(0);
  expect(found).toEqual(createBookLedger(book));
  expect(found).toMatchObject([{ kind: "unknown_macro", examples: ["{{odd}}"] }]);
});
