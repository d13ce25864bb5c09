import { expect, test } from "vitest";
import { fillWorkflow, listPlaceholders } from "../../../../services/image_generation/comfyui/workflow_format.ts";

const workflow = {
  "3": { class_type: "KSampler", inputs: { seed: "%seed%", cfg: "%scale%", model: ["4", 0], on: true, none: null } },
  "6": { class_type: "CLIPTextEncode", inputs: { text: "masterpiece, %prompt%, 100%", list: ["%prompt%"] } },
};

test("a whole value gets the type of what fills it, and a longer text its words", () => {
  const { workflow: filled, unfilled } = fillWorkflow(workflow, { seed: 5, scale: 7.5, prompt: "a fox" });
  expect(filled).toEqual({
    "3": { class_type: "KSampler", inputs: { seed: 5, cfg: 7.5, model: ["4", 0], on: true, none: null } },
    "6": { class_type: "CLIPTextEncode", inputs: { text: "masterpiece, a fox, 100%", list: ["a fox"] } },
  });
  expect(unfilled).toEqual([]);
});

test("the workflow that is filled stays as it was, and places without a value stay in their place", () => {
  const before = structuredClone(workflow);
  const { workflow: filled, unfilled } = fillWorkflow(workflow, { prompt: "x" });
  expect(workflow).toEqual(before);
  expect(filled["3"]!.inputs.seed).toBe("%seed%");
  expect(unfilled).toEqual(["scale", "seed"]);
});

test.each(['"}, "7": {', "%seed%", "\\u0022", "$& $1", "\u2028"])(
  "a prompt of %j is text and nothing else",
  (prompt) => {
    const { workflow: filled } = fillWorkflow(workflow, { seed: 1, scale: 1, prompt });
    expect(filled["6"]!.inputs).toEqual({ text: `masterpiece, ${prompt}, 100%`, list: [prompt] });
    expect(Object.keys(filled)).toEqual(["3", "6"]);
  },
);

test("a name that every object has is no value", () => {
  const odd = { "1": { class_type: "A", inputs: { a: "%constructor%" } } };
  expect(fillWorkflow(odd, {}).unfilled).toEqual(["constructor"]);
});

test("places are listed once, sorted", () => {
  expect(listPlaceholders(workflow)).toEqual(["prompt", "scale", "seed"]);
});
