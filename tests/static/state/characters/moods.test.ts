import { expect, test } from "vitest";
import { chooseExpression } from "../../../../static/src/state/characters/moods.ts";

const NAMES = ["neutral", "joy", "anger", "sadness", "surprise", "embarrassment", "wink"];
const choose = (text: string, names: string[] = NAMES) =>
  chooseExpression(text, names.map((name, n) => ({ n, name })))?.name;

test.each([
  ["*She smiles brightly.* “Good to see you!”", "joy"],
  ["She frowned at first, then laughed and hugged him.", "joy"],
  ["She laughed. Then her eyes filled with tears and she sobbed.", "sadness"],
  ["*Er knurrt wütend.* „Raus!“ schrie er.", "anger"],
  ["Sie lächelt und freut sich.", "joy"],
  ["彼女は頬を染めて、恥ずかしそうにうつむいた。", "embarrassment"],
  ["「まさか！」と彼は驚いた。", "surprise"],
  ["*points at the wink*", "wink"],
  ["The train leaves at nine.", "neutral"],
  ["", "neutral"],
])("finds the expression of %s", (text, expected) => {
  expect(choose(text)).toBe(expected);
});

test.each([
  ["an image of a like mood", "He chuckled.", ["Happy_1.png", "sad"], "Happy_1.png"],
  ["German names", "She cried.", ["fröhlich", "traurig"], "traurig"],
  ["Japanese names", "彼女は泣いた。", ["通常", "悲しい"], "悲しい"],
  ["the first image, without a neutral one", "He sat.", ["pose", "joy"], "pose"],
  ["clothes as they are, not costumes", "She smiled.", ["beach/joy", "joy"], "joy"],
  [
    "the first costume, where there are only costumes",
    "She smiled.",
    ["beach/sad", "beach/joy", "work/joy"],
    "beach/joy",
  ],
])("chooses %s", (_, text, names, expected) => {
  expect(choose(text, names)).toBe(expected);
});

test("chooses nothing without expressions, and reads the end of a long text", () => {
  expect(choose("She smiled.", [])).toBeUndefined();
  expect(choose("cry ".repeat(200_000) + "smile ".repeat(1000))).toBe("joy");
});
