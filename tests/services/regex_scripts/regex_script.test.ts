import { expect, test } from "vitest";
import {
  appliesTo,
  chooseScripts,
  hashScripts,
  parseTavernScript,
  parseTavernScripts,
  PLACEMENTS,
  type RegexScript,
  toTavernScript,
} from "../../../services/regex_scripts/regex_script.ts";

const FILE = {
  id: "5d1c",
  scriptName: "Hide thoughts",
  findRegex: "/<think>(.*?)<\\/think>/gs",
  replaceString: "({{match}})",
  trimStrings: ["<think>"],
  placement: [1, 2, 3, 5, 6],
  disabled: false,
  markdownOnly: true,
  promptOnly: false,
  runOnEdit: true,
  substituteRegex: 2,
  minDepth: null,
  maxDepth: 4,
  note: "by Ada",
};

test("reads a file of SillyTavern and writes the same one", () => {
  const script = parseTavernScript(FILE)!;
  expect(script).toEqual({
    name: "Hide thoughts",
    find: "/<think>(.*?)<\\/think>/gs",
    replace: "({{match}})",
    trim: ["<think>"],
    placement: ["user_input", "ai_output", "slash_command", "world_info", "reasoning"],
    isEnabled: true,
    isDisplayOnly: true,
    isPromptOnly: false,
    runsOnEdit: true,
    findMacros: "escaped",
    maxDepth: 4,
    rest: { note: "by Ada" },
  });
  expect(toTavernScript("5d1c", script)).toEqual(FILE);
});

test.each([
  [[0], PLACEMENTS, true],
  [[0, 2], ["ai_output"], true],
  [[4], ["slash_command"], false],
])("reads the former placement %j", (placement, expected, isLimited) => {
  const script = parseTavernScript({ findRegex: "a", placement })!;
  expect([script.placement, script.isDisplayOnly, script.isPromptOnly]).toEqual([expected, isLimited, isLimited]);
});

test.each([[undefined], ["text"], [{}], [{ findRegex: 5 }], [{ findRegex: "a".repeat(50_001) }], [
  { findRegex: "a", replaceString: "b".repeat(500_001) },
]])("finds no script in %j", (value) => {
  expect(parseTavernScript(value)).toBeUndefined();
  expect(parseTavernScripts([value, { findRegex: "b" }]).map(({ find }) => find)).toEqual(["b"]);
});

test("the hash changes with the content", () => {
  const scripts = parseTavernScripts([FILE]);
  expect(hashScripts(scripts)).toBe(hashScripts(parseTavernScripts([structuredClone(FILE)])));
  expect(hashScripts(scripts)).not.toBe(hashScripts([{ ...scripts[0]!, replace: "" }]));
});

const script = (fields: Partial<RegexScript>): RegexScript => ({
  ...parseTavernScript({ findRegex: "a", placement: [1, 2, 5] })!,
  ...fields,
});

test("scripts for all purposes run before those for one; only they run on an edit, if they say so", () => {
  const all = [
    script({ name: "sent", isPromptOnly: true }),
    script({ name: "shown", isDisplayOnly: true }),
    script({ name: "all" }),
    script({ name: "edited", runsOnEdit: true }),
    script({ name: "off", isEnabled: false }),
    script({ name: "empty", find: "" }),
    script({ name: "edited when sent", isPromptOnly: true, runsOnEdit: true }),
  ].map((one) => ({ script: one }));
  const names = (purpose: "display" | "prompt" | "edit") =>
    chooseScripts(all, purpose).map(({ script: { name } }) => name);
  expect(names("display")).toEqual(["all", "edited", "shown"]);
  expect(names("prompt")).toEqual(["all", "edited", "sent", "edited when sent"]);
  expect(names("edit")).toEqual(["edited"]);
});

test.each([
  [{ minDepth: 2 }, [false, false, true, true]],
  [{ maxDepth: 1 }, [true, true, false, false]],
  [{ minDepth: 1, maxDepth: 2 }, [false, true, true, false]],
  [{ minDepth: -2, maxDepth: -1 }, [true, true, true, true]],
])("depths %j", (limits, expected) => {
  const limited = script({ ...limits, isPromptOnly: true });
  expect([0, 1, 2, 3].map((depth) => appliesTo(limited, { placement: "ai_output", depth }))).toEqual(expected);
  expect(appliesTo(limited, { placement: "ai_output" })).toBe(true);
  // As in SillyTavern, a script for all purposes has no depths.
  expect(appliesTo(script(limits), { placement: "ai_output", depth: 0 })).toBe(true);
});

test("only scripts for the prompt change entries of lorebooks", () => {
  expect(appliesTo(script({ isPromptOnly: true }), { placement: "world_info" })).toBe(true);
  expect(appliesTo(script({}), { placement: "world_info" })).toBe(false);
  expect(appliesTo(script({ placement: ["ai_output"], isPromptOnly: true }), { placement: "world_info" })).toBe(false);
});
