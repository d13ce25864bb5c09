import { expect, test } from "vitest";
import { bytesToSniff, hasTwoMp3Frames, sniffAudio, sniffContainer } from "../../../services/speech/audio_format.ts";
import { fakeAudio, silentMp3 } from "../../helpers/fakes/fake_speech.ts";
import { joined } from "../../helpers/app/joined.ts";

const mp3 = silentMp3(1);
const adts = new Uint8Array([0xff, 0xf1, 0x50, 0x80, 0, 0x1f, 0xfc, ...new Uint8Array(100)]);
const text = (words: string) => new TextEncoder().encode(words.padEnd(200));

/** An ID3v2.4 tag of a size. @param flags 0x10: with a footer */
function tag(size: number, flags = 0): Uint8Array<ArrayBuffer> {
  const head = [0x49, 0x44, 0x33, 4, 0, flags, ...[21, 14, 7, 0].map((shift) => size >> shift & 0x7f)];
  return new Uint8Array([...head, ...new Uint8Array(size + (flags === 0x10 ? 10 : 0))]);
}

test.each([
  ["a tag", joined([tag(300), mp3]), "mp3"],
  ["a tag with a footer", joined([tag(300, 0x10), mp3]), "mp3"],
  ["two tags", joined([tag(20), tag(5000), mp3]), "mp3"],
  ["no tag", mp3, "mp3"],
  ["a tag before AAC", joined([tag(30), adts]), "aac"],
])("an MP3 or AAC file with %s is recognized by its frame", (_name, bytes, format) => {
  expect(sniffAudio(bytes)).toBe(format);
  // The start of a stream is enough if it has the requested length.
  let head = bytes.subarray(0, 64);
  while (head.length < bytesToSniff(head)) head = bytes.subarray(0, bytesToSniff(head));
  expect([sniffAudio(head), head.length < bytes.length]).toEqual([format, true]);
});

test.each([
  ["an ID3v2 tag alone", tag(300)],
  ["an ID3v2 tag cut short", tag(300).subarray(0, 100)],
  ["a tag before a playlist", joined([tag(300), text("#EXTM3U\nfile:///etc/passwd")])],
  ["a tag before a page", joined([tag(0), text("<script>alert(1)</script>")])],
  ["a tag whose size is broken", joined([new Uint8Array([0x49, 0x44, 0x33, 4, 0, 0, 0x80, 0, 0, 0]), mp3])],
  ["a tag before silence", joined([tag(10), new Uint8Array(200)])],
  ["text that begins with ID3", text("ID3 is a tag, and this is a note about it")],
  ["a playlist in UTF-16", new Uint8Array([0xff, 0xfe, ...text("#\0E\0X\0T\0M\0")])],
  ["a frame with a reserved version", new Uint8Array([0xff, 0xeb, 0x90, 0xc4, ...new Uint8Array(100)])],
  ["a frame with a bit rate that is none", new Uint8Array([0xff, 0xfb, 0xf0, 0xc4, ...new Uint8Array(100)])],
])("rejects %s as audio", { tags: ["P11"] }, (_name, bytes) => {
  expect(sniffAudio(bytes)).toBeUndefined();
});

test("loud PCM that begins like a frame isn't recognized as a container or a pair of frames, but real MP3 is", () => {
  const loud = new Uint8Array(4000).map((_, at) => at % 2 === 0 ? 0xfb : 0xff);
  for (const bytes of [joined([new Uint8Array([0xff, 0xfb, 0x90, 0xc4]), fakeAudio("pcm", "x")]), loud.subarray(1)]) {
    expect([sniffContainer(bytes), hasTwoMp3Frames(bytes)]).toEqual([undefined, false]);
  }
  expect(hasTwoMp3Frames(mp3)).toBe(true);
  expect(hasTwoMp3Frames(mp3.subarray(0, 418))).toBe(false);
});
