import { expect, test } from "vitest";
import { fillWorkflow, listPlaceholders } from "../../../../services/image_generation/comfyui/workflow_format.ts";

const workflow = {
  "3": { class_type: "KSampler", inputs: { seed: "%seed%", cfg: "%scale%", model: ["4", 0], on: true, none: null } },
  "6": { class_type: "CLIPTextEncode", inputs: { text: "masterpiece, %prompt%, 100%", list: ["%prompt%"] } },
};

test("a placeholder that is the whole value keeps the type of the inserted value; within a longer text it becomes text", () => {
  const { workflow: filled, unfilled } = fillWorkflow(workflow, { seed: 5, scale: 7.5, prompt: "a fox" });
  expect(filled).toEqual({
    "3": { class_type: "KSampler", inputs: { seed: 5, cfg: 7.5, model: ["4", 0], on: true, none: null } },
    "6": { class_type: "CLIPTextEncode", inputs: { text: "masterpiece, a fox, 100%", list: ["a fox"] } },
  });
  expect(unfilled).toEqual([]);
});

test("filling a workflow doesn't change the original, and placeholders without a value stay", () => {
  const before = structuredClone(workflow);
  const { workflow: filled, unfilled } = fillWorkflow(workflow, { prompt: "x" });
  expect(workflow).toEqual(before);
  expect(filled["3"]!.inputs.seed).toBe("%seed%");
  expect(unfilled).toEqual(["scale", "seed"]);
});

test.each(['"}, "7": {', "%seed%", "\\u0022", "$& $1", "\u2028"])(
  "a prompt of %j is inserted as text only",
  (prompt) => {
    const { workflow: filled } = fillWorkflow(workflow, { seed: 1, scale: 1, prompt });
    expect(filled["6"]!.inputs).toEqual({ text: `masterpiece, ${prompt}, 100%`, list: [prompt] });
    expect(Object.keys(filled)).toEqual(["3", "6"]);
  },
);

test("names of properties that every object has aren't values", () => {
  const odd = { "1": { class_type: "A", inputs: { a: "%constructor%" } } };
  expect(fillWorkflow(odd, {}).unfilled).toEqual(["constructor"]);
});

test("placeholders are listed once, sorted", () => {
  expect(listPlaceholders(workflow)).toEqual(["prompt", "scale", "seed"]);
});
