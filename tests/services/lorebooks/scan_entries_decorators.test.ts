import { expect, test } from "vitest";
import { type Decorators, parseDecorators } from "../../../services/lorebooks/scan_entries.ts";

test.each<[string, Decorators]>([
  ["@@activate_only_after 3", { activateOnlyAfter: 3 }],
  ["@@activate_only_every 2", { activateOnlyEvery: 2 }],
  ["@@activate_only_every 0", {}],
  ["@@keep_activate_after_match", { keepActivateAfterMatch: true }],
  ["@@dont_activate_after_match", { dontActivateAfterMatch: true }],
  ["@@depth 4", { depth: 4 }],
  ["@@depth four", {}],
  ["@@depth -1", { depth: 0 }],
  ["@@reverse_depth 1", { reverseDepth: 1 }],
  ["@@instruct_depth 5", {}],
  ["@@role assistant", { role: "assistant" }],
  ["@@role narrator", {}],
  ["@@scan_depth 10", { scanDepth: 10 }],
  ["@@is_greeting 1", { isGreeting: 1 }],
  ["@@position before_desc", { position: "before_char" }],
  ["@@position personality", {}],
  ["@@ignore_on_max_context", { ignoreOnMaxContext: true }],
  ["@@additional_keys fire, ice ,", { additionalKeys: ["fire", "ice"] }],
  ["@@exclude_keys water", { excludeKeys: ["water"] }],
  ["@@activate", { activate: true }],
  ["@@dont_activate", { dontActivate: true }],
  ["@@disable_ui_prompt system_prompt", { disableUiPrompt: "system_prompt" }],
  ["@@somebody_elses 1", {}],
  ["@@constructor 1", {}],
  ["@@__proto__ 1", {}],
])("%s", (line, decorators) => {
  expect(parseDecorators(`${line}\nThe text.`)).toEqual({ decorators, text: "The text." });
});

test("uses the first of equal decorators, and a fallback if the line above is unknown", () => {
  const content =
    "@@risu_only 1\n@@@instruct_depth 2\n@@@depth 5\n@@@depth 9\n@@role user\n@@@role system\n@@depth 7\n\nText";
  expect(parseDecorators(content)).toEqual({ decorators: { depth: 5, role: "user" }, text: "Text" });
});

test("parses decorators only at the start, and leaves other text unchanged", () => {
  expect(parseDecorators("  Text\n@@depth 4")).toEqual({ decorators: {}, text: "  Text\n@@depth 4" });
  expect(parseDecorators("@@depth 4")).toEqual({ decorators: { depth: 4 }, text: "" });
  expect(parseDecorators("\r\n@@depth 4\r\nText")).toEqual({ decorators: { depth: 4 }, text: "Text" });
});
