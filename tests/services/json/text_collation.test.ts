import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { quoteKey, sortByName } from "../../../services/json/text.ts";

const byKey = (names: readonly string[]) =>
  names.map((name) => [quoteKey(name), name] as const)
    // In the order of a database: by code points, not by the rules of a language.
    .sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b))).map(([, name]) => name);

const inOrderOf = (locale: string, names: readonly string[]) =>
  [...names].sort(new Intl.Collator(locale, { numeric: true }).compare);

const NAMES = [
  ...[
    "Unit 10",
    "Unit 2",
    "Unit 1",
    "unit 02b",
    "Unit 100 A",
    "Unit 1a",
    "Unit 99999999999",
    "10",
    "2",
    "007",
    "8 Ball",
  ],
  ...["Zoë", "Zoe B", "zebra", "Öhler", "Ohler", "Ohm", "Otto", "Ärger", "Arger", "Argus", "Ältere", "Alter", "Übel"],
  ...["Straße", "Strasse 2", "Strassf", "Æsop", "Aesra", "Ørsted", "Orsu", "Łukasz", "Luk", "Ångström", "Angstrom 2"],
  ...["Mary-Jane", "Mary Jane 2", "Maryann", "(Draft)", "_under", "~tilde", "$cash", "O'Neill", "Oneill 2", "É. Zola"],
  ...[
    "Жанна",
    "Анна",
    "Ωmega",
    "Alpha",
    "さくら",
    "サクラ 2",
    "あおい",
    "カナ",
    "東京",
    "２ wide",
    "Ａ wide",
    "🦊 fox",
    "",
  ],
];

test.each(["en", "de"])("sorts names like a %s dictionary, numbers by value", (locale) => {
  expect(byKey(NAMES)).toEqual(inOrderOf(locale, NAMES));
});

test("ignores case and sorts a name before longer names that start with it", () => {
  expect(quoteKey("FOX")).toBe(quoteKey("fox"));
  expect(byKey(["Fox 2", "Foxglove", "Fox"])).toEqual(["Fox", "Fox 2", "Foxglove"]);
});

test("sorts items with the same name by id", () => {
  const things = [{ id: "c", name: "Fox 10" }, { id: "b", name: "fox 2" }, { id: "a", name: "Fox 2" }];
  expect(sortByName(things).map(({ id }) => id)).toEqual(["a", "b", "c"]);
});

test("creates keys that a database stores unchanged", () => {
  const key = quoteKey("a\0b\ud800 \u0001c");
  expect(key.includes("\0")).toBe(false);
  expect(key.isWellFormed()).toBe(true);
});
