import { expect, test } from "vitest";
import {
  fillVariables,
  findTemplates,
  listVariables,
  toTemplateSnippet,
} from "../../../../static/src/state/chat/slash_commands.ts";

const templates = [{ name: "Zusammenfassung", text: "Fasse zusammen." }, { name: "translate", text: "[[text]]" }];

test("templates match the word after the slash, whatever its case, while the text is nothing else", () => {
  const namesFor = (text: string) => findTemplates(text, templates).map(({ name }) => name);
  expect(namesFor("/")).toEqual(["Zusammenfassung", "translate"]);
  expect(namesFor("/zu")).toEqual(["Zusammenfassung"]);
  expect(namesFor("/TRANS")).toEqual(["translate"]);
  expect(namesFor("/trans late")).toEqual([]);
  expect(namesFor("say /trans")).toEqual([]);
});

test("a snippet is the first line, shortened", () => {
  expect(toTemplateSnippet("\n  One\nTwo")).toBe("One");
  expect(toTemplateSnippet("🦊".repeat(8_000))).toBe(`${"🦊".repeat(100)}…`);
});

test("variables are listed once, in the order of the text", () => {
  expect(listVariables("From [[source]] to [[ target ]], then [[source]]. [[]] [single] {{char}}")).toEqual([
    "source",
    "target",
  ]);
});

test("a variable without a value stays, and values aren't searched for variables", () => {
  expect(fillVariables("[[a]], [[ b ]], [[c]]", { a: "[[c]]", b: "$&", c: "" })).toBe("[[c]], $&, [[c]]");
  expect(fillVariables("[[toString]]", {})).toBe("[[toString]]");
});

test("a script command isn't offered after a slash", () => {
  const button = { label: "Roll", action: "send" as const };
  const all = [{ name: "roll", text: "/roll 1d6", button }, { name: "rollen", text: "*rolls*", button }];
  expect(findTemplates("/rol", all).map(({ name }) => name)).toEqual(["rollen"]);
});
