import { expect, test } from "vitest";
import { cleanTranscript, toMeter, toWave } from "../../../static/src/speech/dictation.ts";
import { isEcho } from "../../../static/src/speech/hands_free.ts";

test.each(["[BLANK_AUDIO]", " (wind blowing) ", "*sighs*", "♪ ♪", "[Music] (applause)", ""])(
  "treats %j as silence",
  (text) => expect(cleanTranscript(text)).toBe(""),
);

test("keeps what was said", () => {
  expect(cleanTranscript(" Hello (again). ")).toBe("Hello (again).");
});

test("recognizes its own words, and not an answer to them", () => {
  const spoken = "The ferry comes in at nine, and the light on the pier is lit.";
  expect(isEcho("the ferry comes in at nine and the", spoken)).toBe(true);
  expect(isEcho("Stop. What about the bus?", spoken)).toBe(false);
  expect(isEcho("", spoken)).toBe(false);
});

test("makes a WAV file of 16 kHz", async () => {
  const view = new DataView(await toWave(new Int16Array([1, -1, 300])).arrayBuffer());
  expect([view.getUint32(24, true), view.getUint32(40, true), view.getInt16(48, true)]).toEqual([16_000, 6, 300]);
});

test("shows speech in the upper half of the meter, silence at the bottom", () => {
  expect(toMeter(0)).toBe(0);
  expect(toMeter(0.001)).toBe(0);
  expect(toMeter(0.1)).toBeGreaterThan(0.5);
  expect(toMeter(1)).toBe(1);
});
