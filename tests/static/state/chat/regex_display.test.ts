import { expect, test } from "vitest";
import { dropStyleSheets } from "../../../../static/src/state/chat/regex_display.ts";

test.each([
  ["<style>\n.a { color: red }\n</style>\n<div>Mira</div>", "\n<div>Mira</div>"],
  ['A<STYLE type="text/css">b{}</Style >B<style>c{}</style>C', "ABC"],
  ["```html\n<style>a{}</style>\n```\nThen <style>b{}</style>this", "```html\n<style>a{}</style>\n```\nThen this"],
  ["~~~~\n<style>a{}</style>\n~~~\n~~~~\n<style>b{}</style>", "~~~~\n<style>a{}</style>\n~~~\n~~~~\n"],
  ["```\n<style>a{}</style>", "```\n<style>a{}</style>"],
  ["<style>a{} and no end", "<style>a{} and no end"],
  ["In <styled> and <style-guide>, nothing", "In <styled> and <style-guide>, nothing"],
  ["İ<style>a{}</style>b", "İb"],
])("of %j, without style sheets, %j is left", (text, left) => expect(dropStyleSheets(text)).toBe(left));

test.each(["<style ", "<style>", "</style ", "```\n", "<style></style>"])("a text of 200,000 times %j ends", (part) => {
  expect(dropStyleSheets(part.repeat(200_000))).toBe(part === "<style></style>" ? "" : part.repeat(200_000));
});
