import { expect, test } from "vitest";
import { findCompleteModels, findMissingWeights } from "../../../../services/models/local/models_folder.ts";
import { listCandidates } from "../../../../services/models/downloads/downloads.ts";

const paths = (...names: string[]) => names.map((path) => ({ path }));

test("models with all their shards are found in order, each by its folder, stem and count", () => {
  const groups = findCompleteModels(paths(
    "b-00002-of-00002.gguf",
    "a/b-00001-of-00002.gguf",
    "b-00001-of-00002.gguf",
    "b-00001-of-00003.gguf",
    "b-00002-of-00003.gguf",
    "c-00001-of-00001.gguf",
    "d-00003-of-00002.gguf",
    "whole.gguf",
  ));
  expect(groups.map((parts) => parts.map(({ path }) => path))).toEqual([
    ["b-00001-of-00002.gguf", "b-00002-of-00002.gguf"],
    ["c-00001-of-00001.gguf"],
  ]);
});

test("names with a hundred thousand parts cost no more than others", { tags: ["E11"] }, () => {
  const sha256 = "0".repeat(64);
  const files = Array.from({ length: 20_000 }, (_, n) => ({ path: `${n}-00001-of-99999.gguf`, sizeBytes: 1, sha256 }));
  files.push({ path: "x-Q8_0.gguf", sizeBytes: 1, sha256 });
  const repo = { repo: "owner/name", revision: "1".repeat(40), isGated: false, license: null, files };
  expect(listCandidates(repo, "gguf").map(({ path }) => path)).toEqual(["x-Q8_0.gguf"]);
});

test.each([
  [["model.safetensors"], undefined],
  [["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"], undefined],
  [["model-00002-of-00002.safetensors"], "model-00001-of-00002.safetensors"],
  [["model-00001-of-99999.safetensors"], "model-00002-of-99999.safetensors"],
])("of weights %j the missing one is %s", (names, missing) => {
  expect(findMissingWeights(names)).toBe(missing);
});
