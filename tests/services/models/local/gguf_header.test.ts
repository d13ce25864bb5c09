import { afterAll, beforeAll, expect, test } from "vitest";
import { readGgufHeader } from "../../../../services/models/local/gguf_header.ts";
import { Bytes, ggufFile } from "../../../helpers/files/gguf_file.ts";
import { type TempFolder, tempFolder } from "../../../helpers/files/storage_folder.ts";

let folder: TempFolder;
beforeAll(async () => {
  folder = await tempFolder();
});
afterAll(() => folder[Symbol.asyncDispose]());

async function headOf(bytes: Uint8Array) {
  const path = folder.file(`${crypto.randomUUID()}.gguf`);
  await Deno.writeFile(path, bytes);
  return await readGgufHeader(path);
}

const KEYS = {
  "general.architecture": "llama",
  "general.name": "Little Llama",
  "general.size_label": "1B",
  "general.file_type": 15,
  "llama.context_length": 4096,
  "llama.block_count": 22,
};

test.each([2, 3])("a header of version %d has architecture, size, context and quantization", async (version) => {
  const tokens = Array.from({ length: 200_000 }, (_, n) => `token ${n}`); // far beyond one buffer
  const bytes = ggufFile({
    version,
    keys: { "tokenizer.ggml.tokens": tokens, ...KEYS },
    tensors: [[4096, 4096], [32000, 4096], [4096]],
  });
  expect(await headOf(bytes)).toEqual({
    architecture: "llama",
    name: "Little Llama",
    sizeLabel: "1B",
    quantization: "Q4_K_M",
    contextSize: 4096,
    layers: 22,
    hasChatTemplate: false,
    parameters: 4096 * 4096 + 32000 * 4096 + 4096,
  });
});

test("a header says whether the model has a chat template", async () => {
  const template = "{% for message in messages %}{{ message.content }}{% endfor %}".repeat(1000);
  expect(await headOf(ggufFile({ keys: { "tokenizer.chat_template": template, ...KEYS } }))).toMatchObject({
    hasChatTemplate: true,
    layers: 22,
  });
});

/** A head with one key whose value is raw JSON. */
const withValue = (write: (bytes: Bytes) => Bytes, keys = 1) =>
  write(new Bytes().text("GGUF").uint32(3).uint64(0).uint64(keys).string("k")).bytes();

test.each<[string, () => Uint8Array]>([
  ["version 1", () => ggufFile({ version: 1 })],
  ["big-endian version 3", () => ggufFile({ version: 50331648 })],
  ["a head that breaks off", () => ggufFile({ keys: KEYS, tensors: [[1, 2]] }).subarray(0, 90)],
  ["2^63 keys", () => new Bytes().text("GGUF").uint32(3).uint64(0).uint64(2n ** 63n).bytes()],
  ["2^40 tensors", () => new Bytes().text("GGUF").uint32(3).uint64(2n ** 40n).uint64(0).bytes()],
  ["a key of 2^60 bytes", () => new Bytes().text("GGUF").uint32(3).uint64(0).uint64(1).uint64(2n ** 60n).bytes()],
  ["a text of 2^62 bytes", () => withValue((bytes) => bytes.uint32(8).uint64(2n ** 62n))],
  ["an array of 2^62 numbers", () => withValue((bytes) => bytes.uint32(9).uint32(10).uint64(2n ** 62n))],
  ["an array that claims what is not there", () => withValue((bytes) => bytes.uint32(9).uint32(8).uint64(60_000_000))],
  ["a value of an unknown type", () => withValue((bytes) => bytes.uint32(99))],
  ["a name of a megabyte", () => ggufFile({ keys: { "general.name": "x".repeat(1_000_000) } })],
  ["arrays in arrays in arrays", () =>
    withValue((bytes) => {
      bytes.uint32(9);
      for (let n = 0; n < 1000; n++) bytes.uint32(9).uint64(1);
      return bytes;
    })],
  [
    "a tensor of a million dimensions",
    () => new Bytes().text("GGUF").uint32(3).uint64(1).uint64(0).string("t").uint32(1_000_000).bytes(),
  ],
])("reads nothing from a header with %s, and does no harm", { tags: ["P07"] }, async (_, make) => {
  expect(await headOf(make())).toEqual({});
});

test.each([0, 3, 1000])("rejects a file of %d bytes without GGUF's magic", async (bytes) => {
  expect(await headOf(new TextEncoder().encode("<!doctype html>".padEnd(bytes).slice(0, bytes)))).toBeUndefined();
});

test("overflowing sizes aren't shown", async () => {
  expect(await headOf(ggufFile({ tensors: [[2 ** 40, 2 ** 40]] }))).toEqual({
    architecture: "llama",
    hasChatTemplate: false,
  });
});

test("keys with the names of object members are ordinary keys", async () => {
  expect(await headOf(ggufFile({ keys: { __proto__: "x", "constructor": "y", "general.architecture": "z" } })))
    .toEqual({ architecture: "z", hasChatTemplate: false });
});
