import { expect, test } from "vitest";
import { setWaveLengths, toWaveFile } from "../../../static/src/speech/wave_file.ts";
import { fakeAudio, wavFile } from "../../helpers/fakes/fake_speech.ts";

test("writes the lengths that a streaming sender didn't know", () => {
  const file = setWaveLengths(fakeAudio("wav", "A sentence."));
  const view = new DataView(file.buffer);
  expect([view.getUint32(4, true), view.getUint32(40, true)]).toEqual([file.length - 8, file.length - 44]);
});

test("leaves a file with another layout, or an empty one, unchanged", () => {
  const other = wavFile(0.1);
  other.set(new TextEncoder().encode("LIST"), 36);
  expect(setWaveLengths(other.slice())).toEqual(other);
  expect(setWaveLengths(new Uint8Array(3))).toEqual(new Uint8Array(3));
});

test("adds the header that an encoder would write to headerless samples", () => {
  expect(toWaveFile(new Uint8Array(4800), 24_000)).toEqual(wavFile(0.1));
});
