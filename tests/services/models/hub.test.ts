import { expect, test } from "vitest";
import { Hub } from "../../../services/models/hub.ts";
import { listCandidates } from "../../../services/models/downloads/downloads.ts";
import type { FakeRepo } from "../../helpers/fakes/fake_hub.ts";
import { ggufFile } from "../../helpers/files/gguf_file.ts";
import { openModelBench } from "../../helpers/app/downloads_fixture.ts";
import { listLongJson } from "../../helpers/app/long_json.ts";

const anybody = new AbortController().signal;
const file = (sizeBytes = 2000) => ggufFile({ sizeBytes });

test("a search returns the hub's details of each repository, page by page, without repeats", async () => {
  const repos: Record<string, FakeRepo> = {};
  for (let n = 0; n < 70; n++) repos[`owner/model-${n}`] = { files: {}, downloads: 1000 - n, license: "mit" };
  repos["owner/other"] = { files: {}, tags: ["mlx"] };
  repos["owner/model-0"]!.gated = "auto";
  await using bench = await openModelBench(repos);
  const found = [];
  let cursor: string | undefined;
  do {
    const page = await bench.client.search({ query: "model", format: "gguf", cursor }, anybody);
    found.push(...page.items);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  expect(found.map(({ repo }) => repo)).toEqual(Array.from({ length: 70 }, (_, n) => `owner/model-${n}`));
  expect(found[0]).toEqual({
    repo: "owner/model-0",
    downloads: 1000,
    likes: 3,
    updatedAt: "2026-08-01T10:00:00.000Z",
    isGated: true,
    license: "mit",
    tags: ["gguf", "license:mit"],
  });
  const asked = new URL(bench.hub.requests[0]!.path, bench.hub.url).searchParams;
  expect(Object.fromEntries(asked)).toMatchObject({ filter: "gguf", search: "model", limit: "30" });
  expect((await bench.client.search({ query: "", format: "mlx" }, anybody)).items).toMatchObject([
    { repo: "owner/other" },
  ]);
});

test.each(["x", "limit=5", "cursor"])("rejects the cursor %j, which no search returned", async (cursor) => {
  await using bench = await openModelBench({});
  const asked = bench.client.search({ query: "", format: "gguf", cursor }, anybody);
  await expect(asked).rejects.toMatchObject({ code: "invalid_request" });
  expect(bench.hub.requests).toEqual([]);
});

test("the next page of a mirror that passes on the original's address is requested from the mirror only", async () => {
  const files = Object.fromEntries(Array.from({ length: 5 }, (_, n) => [`m-${n}.gguf`, file()]));
  await using bench = await openModelBench({ "owner/name": { files } }, { token: "hf_mirror" });
  bench.hub.tokens.hf_mirror = true;
  bench.hub.faults.linkOrigin = "https://huggingface.co";
  expect((await bench.client.getRepo("owner/name", anybody)).files).toHaveLength(5);
  bench.hub.faults.linkOrigin = "https://evil.example.org";
  await expect(bench.client.getRepo("owner/name", anybody)).rejects.toMatchObject({ code: "upstream_error" });
});

test("files of a repository are grouped by shards, with projectors apart and without incomplete ones", async () => {
  const files: Record<string, Uint8Array> = { "README.md": file(), "x.safetensors": file(), "imatrix.gguf": file() };
  for (const n of [1, 2, 3]) files[`UD-Q4_K_XL/big-0000${n}-of-00003.gguf`] = file(2000 + n);
  files["lost-00001-of-00002.gguf"] = file();
  files["small.IQ4_XS.gguf"] = file(1500);
  files["mmproj-F16.gguf"] = file(1200);
  await using bench = await openModelBench({ "owner/name": { files, license: "apache-2.0", gated: "manual" } });
  const repo = await bench.client.getRepo("owner/name", anybody);
  expect(repo).toMatchObject({ revision: bench.hub.commit, isGated: true, license: "apache-2.0" });
  expect(listCandidates(repo, "gguf")).toEqual([
    { path: "small.IQ4_XS.gguf", sizeBytes: 1500, role: "model", quantization: "IQ4_XS", sha256: expect.any(String) },
    {
      path: "UD-Q4_K_XL/big-00001-of-00003.gguf",
      sizeBytes: 6006,
      role: "model",
      quantization: "UD-Q4_K_XL",
      shards: [1, 2, 3].map((n) => `UD-Q4_K_XL/big-0000${n}-of-00003.gguf`),
    },
    { path: "mmproj-F16.gguf", sizeBytes: 1200, role: "mmproj", quantization: "F16", sha256: expect.any(String) },
    { path: "imatrix.gguf", sizeBytes: 2000, role: "other", sha256: expect.any(String) },
  ]);
  await expect(bench.start({ repo: "owner/name", format: "gguf", file: "lost-00001-of-00002.gguf" })).rejects
    .toMatchObject({ code: "unprocessable", message: expect.stringContaining("lost-00002-of-00002.gguf") });
});

test.each<[string, FakeRepo | undefined, string | undefined, string, RegExp]>([
  ["missing", undefined, undefined, "not_found", /doesn't exist, or it is private.*hub_token_file/],
  [
    "private, to another's token",
    { files: {}, isPrivate: true },
    "hf_bad",
    "upstream_error",
    /token in hub_token_file is invalid/,
  ],
  ["missing, with a token", undefined, "hf_good", "not_found", /doesn't exist$/],
])("a repository that is %s gives an error that says what to do", async (_, repo, token, code, message) => {
  await using bench = await openModelBench(repo === undefined ? {} : { "owner/name": repo }, { token });
  bench.hub.tokens.hf_good = true;
  await expect(bench.client.getRepo("owner/name", anybody)).rejects
    .toMatchObject({ code, message: expect.stringMatching(message) });
});

test("an unreadable token file is reported without its content", async () => {
  await using bench = await openModelBench({}, { token: "two words that are no token" });
  const asked = bench.client.search({ query: "", format: "gguf" }, anybody);
  await expect(asked).rejects.toMatchObject({
    code: "not_available",
    message: expect.stringMatching(/doesn't contain a token$/),
  });
  expect(bench.hub.requests).toEqual([]);
});

test("a hub that doesn't answer is an upstream error", { tags: ["E13"] }, async () => {
  await using bench = await openModelBench({});
  await bench.hub[Symbol.asyncDispose]();
  await expect(bench.client.search({ query: "", format: "gguf" }, anybody)).rejects
    .toMatchObject({
      code: "upstream_error",
      message: expect.stringMatching(/not allowed or does not answer\. .*guard_allow includes them$/),
    });
});

/** Opens a client of a hub that sends this to any request. */
const hubWith = (...pieces: string[]) => {
  const fetch = () => Promise.resolve(new Response(ReadableStream.from(pieces.map((piece) => encoder.encode(piece)))));
  return new Hub({ guard: { fetch }, url: "https://hub.example", tokenFile: null });
};
const encoder = new TextEncoder();

test("a long answer is read without parsing it at once", async () => {
  const sha = "1".repeat(40);
  const files = Array.from({ length: 20_000 }, (_, n) => ({ type: "file", path: `model-${n}.gguf`, size: n }));
  const siblings = files.map(({ path }) => ({ rfilename: path }));
  const [tree, detail] = [JSON.stringify(files), JSON.stringify({ sha, siblings, tags: ["license:mit"] })];
  const answers = [detail, tree];
  const fetch = () => Promise.resolve(new Response(answers.shift()));
  const client = new Hub({ guard: { fetch }, url: "https://hub.example", tokenFile: null });
  let found;
  expect(await listLongJson(async () => void (found = await client.getRepo("owner/name", anybody)))).toEqual([]);
  expect(found).toMatchObject({
    revision: sha,
    license: "mit",
    files: { length: 20_000, 19999: { sizeBytes: 19_999 } },
  });
});

test("an answer that is too long, isn't JSON or is nested too deep is refused", { tags: ["E11"] }, async () => {
  const search = (client: Hub) => client.search({ query: "", format: "gguf" }, anybody);
  let isClosed = false;
  const endless = new ReadableStream({
    pull: (controller) => controller.enqueue(encoder.encode(" ".repeat(100_000))),
    cancel: () => void (isClosed = true),
  });
  const guard = { fetch: () => Promise.resolve(new Response(endless)) };
  await expect(search(new Hub({ guard, url: "https://hub.example", tokenFile: null }))).rejects.toMatchObject({
    code: "upstream_error",
    message: 'Can\'t get the search for "" from the model hub: the response is larger than 4194304 bytes',
  });
  expect(isClosed).toBe(true);
  for (const pieces of [["[", "{"], ["<html>"], [""], ["[".repeat(1_000), "]".repeat(1_000)]]) {
    await expect(search(hubWith(...pieces))).rejects.toMatchObject({
      code: "upstream_error",
      message: expect.stringContaining("the response isn't JSON"),
    });
  }
});
