/** Heads of GGUF files. */
import { readGgufHeader } from "../../../services/models/local/gguf_header.ts";
import { Bytes, ggufFile } from "../../helpers/files/gguf_file.ts";
import { mutateBytes, oddText } from "../mutations.ts";
import { claim, target } from "../target.ts";

const [STRING, ARRAY] = [8, 9];

let folder: string;

/** A head of the given keys, written by hand. */
const head = (keys: number) => new Bytes().text("GGUF").uint32(3).uint64(0).uint64(keys);

export const GGUF = target<Uint8Array>({
  name: "gguf",
  async open() {
    folder = await Deno.makeTempDir({ prefix: "fuzz-gguf-" });
  },
  close: () => Deno.remove(folder, { recursive: true }),
  generate(random) {
    const values = () =>
      random.pick([
        () => random.below(2 ** 31),
        () => oddText(random).slice(0, 2_000),
        () => random.list(random.size(1_000), () => "token"),
      ])();
    const keys = Object.fromEntries([
      ["general.architecture", random.pick(["llama", "__proto__", oddText(random).slice(0, 2_000)])],
      ...random.list(random.size(10), () => [
        random.pick([
          "general.name",
          "general.size_label",
          "general.file_type",
          "llama.context_length",
          "x",
          "__proto__",
        ]),
        values(),
      ]),
    ]);
    const tensors = random.list(random.size(20), () => random.list(random.below(10), () => random.below(2 ** 31)));
    return mutateBytes(random, ggufFile({ keys, tensors, version: random.pick([2, 3, 3, 3, 1]) }));
  },
  async run(bytes) {
    const path = `${folder}/model.gguf`;
    await Deno.writeFile(path, bytes);
    const found = await readGgufHeader(path);
    if (found === undefined) return;
    const { architecture = "", name = "", sizeLabel = "", quantization = "", hasChatTemplate, ...numbers } = found;
    for (const text of [architecture, name, sizeLabel, quantization]) {
      claim(typeof text === "string" && text.length <= 1024, () => `A text of a head is none: ${typeof text}`);
    }
    claim(["boolean", "undefined"].includes(typeof hasChatTemplate), () => `A flag is none: ${hasChatTemplate}`);
    for (const number of Object.values(numbers)) {
      claim(number === undefined || Number.isSafeInteger(number), () => `A number of a head is none: ${number}`);
    }
  },
  cases: {
    "a list of 64 million empty strings": () =>
      new Bytes().text("GGUF").uint32(3).uint64(0).uint64(1).string("a").uint32(ARRAY).uint32(STRING)
        .uint64(67_108_864).text("\0".repeat(4_000_000)).bytes(),
    "lists of lists": () => {
      const bytes = head(1).string("a").uint32(ARRAY);
      for (let depth = 0; depth < 1_000; depth++) bytes.uint32(ARRAY).uint64(1_000_000);
      return bytes.bytes();
    },
    "a million keys": () => head(1_000_000).bytes(),
  },
});
