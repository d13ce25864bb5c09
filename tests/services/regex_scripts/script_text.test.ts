import { expect, test } from "vitest";
import { compileFind, replaceMatches, TooLongError } from "../../../services/regex_scripts/script_text.ts";

function run(text: string, find: string, replace: string, trim: string[] = []): string | undefined {
  return replaceMatches(text, compileFind(find)!, { find, replace, trim })?.join("");
}

test.each([
  ["a-b-c", "/-/g", "+", "a+b+c"],
  ["a-b-c", "-", "+", "a+b-c"],
  ["a-b-c", "/-/", "+", "a+b-c"],
  ["A fox", "/a (\\w+)/i", "$1 $0 {{match}} {{MATCH}}", "fox A fox A fox A fox"],
  ["A fox", "/(?<beast>fox)(z)?/", "<$<beast>|$2|$9|$<none>>", "A <fox|||>"],
  ["costs 5$", "/\\d/", "$$ and $& and $`", "costs $$ and $& and $`$"],
  ["abc", "/(?:)/g", ".", ".a.b.c."],
  ["/x/y", "/x/y", "z", "z"],
  ["a/b", "a/b", "c", "c"],
  ["one\ntwo", "/^two/m", "2", "one\n2"],
  ["one\ntwo", "/e\nt/", "-", "on-wo"],
])("%j with %s and %j", (text, find, replace, expected) => {
  expect(run(text, find, replace)).toBe(expected);
});

test("removes the trim strings from what is inserted, not from other text", () => {
  expect(run("*hi* * *ho*", "/\\*(h.)\\*/g", "<$0>*", ["*", ""])).toBe("<hi>* * <ho>*");
});

test("finds nothing", () => {
  expect(run("abc", "/x/g", "y")).toBeUndefined();
});

test.each(["/(/", "(", "/a/x", "/a/gx"])("%s is invalid", (find) => {
  expect(compileFind(find)).toBeUndefined();
});

test("stops before a text gets too long", () => {
  expect(() => run("a".repeat(10_000), "/a/g", "b".repeat(200))).toThrow(TooLongError);
});
