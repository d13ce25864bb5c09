import { expect, test } from "vitest";
import { setWaveLengths, toWaveFile } from "../../../static/src/speech/wave_file.ts";
import { fakeAudio, wavFile } from "../../helpers/fakes/fake_speech.ts";

test("a streamed file gets the lengths that its sender did not know", () => {
  const file = setWaveLengths(fakeAudio("wav", "A sentence."));
  const view = new DataView(file.buffer);
  expect([view.getUint32(4, true), view.getUint32(40, true)]).toEqual([file.length - 8, file.length - 44]);
});

test("a file of another layout, or of nothing, stays as it is", () => {
  const other = wavFile(0.1);
  other.set(new TextEncoder().encode("LIST"), 36);
  expect(setWaveLengths(other.slice())).toEqual(other);
  expect(setWaveLengths(new Uint8Array(3))).toEqual(new Uint8Array(3));
});

test("headerless samples become a file as an encoder would have made it", () => {
  expect(toWaveFile(new Uint8Array(4800), 24_000)).toEqual(wavFile(0.1));
});
