import { expect, test } from "vitest";
import { de } from "../../../static/src/texts/de/de.ts";
import { en, loadLater } from "../../../static/src/texts/en/en.ts";
import { ja } from "../../../static/src/texts/ja/ja.ts";
import { findLanguage } from "../../../static/src/texts/texts.ts";

await loadLater();

type Leaf = [path: string, value: string | ((...args: unknown[]) => string)];

/** Returns every text with the path of its key. */
function leaves(catalogue: object, path = ""): Leaf[] {
  return Object.entries(catalogue).flatMap(([key, value]): Leaf[] =>
    typeof value === "object" ? leaves(value, `${path}${key}.`) : [[path + key, value]]
  );
}

const paths = (catalogue: object) => leaves(catalogue).map(([path]) => path).sort();

test.each([["German", de], ["Japanese", ja]])("%s has the same keys as English", (_, catalogue) => {
  expect(paths(catalogue)).toEqual(paths(en));
});

test.each([["English", en], ["German", de], ["Japanese", ja]])(
  "no text of %s is empty or has an exclamation mark",
  (_, catalogue) => {
    for (const [path, value] of leaves(catalogue)) {
      const text = typeof value === "function" ? value(2, 2, 2) : value;
      expect(text.trim(), path).not.toBe("");
      expect(text, path).not.toMatch(/[!！]|undefined|NaN|\.\.\./);
    }
  },
);

test.each([["German", de], ["Japanese", ja]])("the texts of %s are translated", (_, catalogue) => {
  const own = new Map(leaves(catalogue));
  const same = leaves(en).filter(([path, value]) => typeof value === "string" && own.get(path) === value);
  // Names and words that are the same in both languages.
  const short = same.filter(([, value]) => String(value).split(" ").length > 2);
  expect(short).toEqual([]);
  expect(same.length).toBeLessThan(leaves(en).length / 10);
});

test("Japanese texts use Japanese script", () => {
  const foreign = leaves(ja).filter(([, value]) =>
    typeof value === "string" && !/[\p{sc=Hira}\p{sc=Kana}\p{sc=Han}]/u.test(value)
  );
  expect(foreign.filter(([, value]) => /\p{sc=Latin}{3}/u.test(String(value)) && String(value).includes(" "))).toEqual(
    [],
  );
});

test("counted words have the right plural form", () => {
  expect([en.connections.models(1), en.connections.models(0), en.connections.models(1234)])
    .toEqual(["1 model", "0 models", "1,234 models"]);
  expect([de.connections.models(1), de.connections.models(1234)]).toEqual(["1 Modell", "1.234 Modelle"]);
  expect(ja.connections.models(1)).toBe("1 個のモデル");
});

test.each(
  [
    [["de-AT", "en"], "de"],
    [[null, "fr-FR", "ja", "en"], "ja"],
    [["DE"], "de"],
    [[undefined, "fr"], "en"],
    [["constructor"], "en"],
    [[], "en"],
  ] as const,
)("the languages %j select %s", (wanted, language) => expect(findLanguage(wanted)).toBe(language));
