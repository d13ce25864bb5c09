import { expect, test } from "vitest";
import { EventStreamParser, MAX_EVENT_CHARS } from "../../../../services/llm/streaming/event_stream_parser.ts";

type Seen = [name: string | undefined, data: string];

function parse(text: string, chunkBytes: number): Seen[] {
  const seen: Seen[] = [];
  const parser = new EventStreamParser((name, data) => seen.push([name, data]));
  const bytes = new TextEncoder().encode(text);
  for (let start = 0; start < bytes.length; start += chunkBytes) parser.push(bytes.subarray(start, start + chunkBytes));
  parser.end();
  return seen;
}

test.each(
  [1, 2, 3, 7, 64, 1 << 20].flatMap((size) => ["\n", "\r", "\r\n"].map((eol): [number, string] => [size, eol])),
)("events in reads of %i bytes with line end %j are exact", { tags: ["U04"] }, (size, eol) => {
  const text = [
    ...['data: {"a":"日本🦊ü"}', ""],
    ...[": comment 🦊", ""],
    ...["data:no space", ""],
    ...["event: named", "id: 5", "data: one", "data:  two", ""],
    ...['error: {"message":"no"}', ""],
    ...["err", "errors: x", "event", "data", ""],
    ...["data: [DONE]"],
  ].join(eol);
  expect(parse(text, size)).toEqual([
    [undefined, '{"a":"日本🦊ü"}'],
    [undefined, "no space"],
    ["named", "one\n two"],
    ["error", '{"message":"no"}'],
    [undefined, ""],
    [undefined, "[DONE]"],
  ]);
});

test("a byte order mark is removed at the start and kept within a text", () => {
  for (const size of [1, 2, 100]) expect(parse("\ufeffdata: a\ufeffb\n\n", size)).toEqual([[undefined, "a\ufeffb"]]);
});

test("half a character at the end becomes the replacement character, and nothing before it is lost", () => {
  const seen: Seen[] = [];
  const parser = new EventStreamParser((name, data) => seen.push([name, data]));
  parser.push(new Uint8Array([...new TextEncoder().encode("data: ab"), 0xf0, 0x9f]));
  parser.end();
  expect(seen).toEqual([[undefined, "ab\ufffd"]]);
});

test.each(["data: ", "data", "", ": ", "error: ", "garbage "])(
  "50 MB without a newline after %j end early with an error, and nothing is stored",
  { tags: ["U04"] },
  (start) => {
    const parser = new EventStreamParser(() => {});
    const block = new TextEncoder().encode("z".repeat(64 * 1024));
    parser.push(new TextEncoder().encode(start));
    let taken = 0;
    const flood = () => {
      for (; taken < 50_000_000; taken += block.length) parser.push(block);
    };
    expect(flood).toThrow(RangeError);
    expect(taken).toBeLessThanOrEqual(MAX_EVENT_CHARS);
  },
);

test("many lines that never end an event are also limited", { tags: ["U04"] }, () => {
  const parser = new EventStreamParser(() => {});
  const block = new TextEncoder().encode("data: x\n".repeat(8192));
  expect(() => {
    for (let n = 0; n < 1000; n++) parser.push(block);
  }).toThrow(RangeError);
});

test("comments are a sign of life and are never limited", () => {
  const parser = new EventStreamParser(() => {});
  const block = new TextEncoder().encode(": keep-alive\n\n".repeat(4096));
  expect(() => {
    for (let n = 0; n < 300; n++) parser.push(block);
  }).not.toThrow();
});

test.each([
  ["Out of memory", "Out of memory"],
  ["data: a\n\nOut of memory\n\n", "Out of memory"],
  ["data: a\r\n\r\nOut of\r\nmemory", "Out of\nmemory"],
  ["Out of memory\n\ndata: a\n\n", ""],
  ["\ufeffdata: null\n", ""],
  ["data: a\nlost\n\n", ""],
  ["event: x\nid: 1\n: note\n\nretry: 5\n", ""],
  ["data: a\n\n data: b", "data: b"],
  ["data: a\n\n" + "x".repeat(3_000), "x".repeat(1_000)],
])("lines outside of events in %j are the same in reads of any size", (text, expected) => {
  for (const size of [1, 2, 3, 7, 1 << 20]) {
    const parser = new EventStreamParser(() => {});
    const bytes = new TextEncoder().encode(text);
    for (let start = 0; start < bytes.length; start += size) parser.push(bytes.subarray(start, start + size));
    parser.end();
    expect([size, parser.strayText]).toEqual([size, expected]);
  }
});
