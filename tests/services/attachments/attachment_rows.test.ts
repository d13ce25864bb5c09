import { expect, test } from "vitest";
import { sniffRecording } from "../../../services/attachments/attachment_rows.ts";
import { joined } from "../../helpers/app/joined.ts";
import { bytesOf, recording } from "../../helpers/files/recordings.ts";

const ID3 = bytesOf("ID3", [4, 0, 0, 0, 0, 0, 5], "title");

test.each(
  [
    ["wav", "audio/wav"],
    ["webm", "audio/webm"],
    ["ogg", "audio/ogg"],
    ["mp4", "audio/mp4"],
    ["m4a", "audio/mp4"],
    ["mp3", "audio/mpeg"],
    ["flac", "audio/flac"],
  ] as const,
)("recognizes %s", (format, type) => expect(sniffRecording(recording(format))).toBe(type));

test("recognizes an MP3 after a tag", () => {
  expect(sniffRecording(ID3)).toBeUndefined();
  expect(sniffRecording(joined([ID3, recording("mp3").subarray(0, 64)]))).toBe("audio/mpeg");
});

test.each([
  ["AVIF", bytesOf([0, 0, 0, 32], "ftypavif", new Array(100).fill(0))],
  ["HEIC", bytesOf([0, 0, 0, 32], "ftypheic", new Array(100).fill(0))],
  ["bytes that look like one MP3 frame", bytesOf([0xff, 0xfb, 0x90, 0x00], "<script>alert(1)</script>".padEnd(2000))],
  ["AVI", bytesOf("RIFF", [0, 0, 1, 0], "AVI LIST".padEnd(100))],
  ["HTML", bytesOf("<!doctype html><script>alert(1)</script>".padEnd(2000))],
  ["nothing", bytesOf()],
])("doesn't recognize %s as a recording", (_name, bytes) => expect(sniffRecording(bytes)).toBeUndefined());
