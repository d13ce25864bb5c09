import { expect, test } from "vitest";
import { sha256 } from "../../../helpers/fakes/fake_hub.ts";
import { ggufFile } from "../../../helpers/files/gguf_file.ts";
import { openModelBench } from "../../../helpers/app/downloads_fixture.ts";

const MODEL = ggufFile({ sizeBytes: 3_000_000 });
const REPOS = {
  "owner/name": {
    files: {
      "README.md": new TextEncoder().encode("# A model"),
      "tiny.gguf": ggufFile({ sizeBytes: 500 }),
      "x-Q4_K_M.gguf": MODEL,
      "x-Q8_0.gguf": ggufFile({ sizeBytes: 200_000 }),
      "x-F16.gguf": ggufFile({ sizeBytes: 210_000 }),
    },
  },
};
const ASK = { repo: "owner/name", format: "gguf" as const, file: "x-Q4_K_M.gguf" };

test("a file is downloaded, verified and stored under its final name only", async () => {
  await using bench = await openModelBench(REPOS);
  const download = await bench.run(ASK, "done");
  expect(download).toMatchObject({
    progress: { done: MODEL.length, total: MODEL.length, unit: "bytes" },
    detail: {
      ...ASK,
      revision: bench.hub.commit,
      files: [{ path: "x-Q4_K_M.gguf", sizeBytes: MODEL.length, receivedBytes: MODEL.length, sha256: sha256(MODEL) }],
    },
  });
  expect(await bench.files()).toEqual(["owner/name/x-Q4_K_M.gguf"]);
  expect(await Deno.readFile(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`)).toEqual(MODEL);
  const { mode } = await Deno.stat(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`);
  expect(mode! & 0o777).toBe(0o600);
  expect(await bench.local.list()).toMatchObject([{ path: "owner/name/x-Q4_K_M.gguf", repo: "owner/name" }]);
});

test("a small file, which the hub keeps in git, is verified by git's hash", async () => {
  await using bench = await openModelBench(REPOS);
  await bench.run({ ...ASK, file: "tiny.gguf" }, "done");
  bench.hub.repos["owner/name"]!.files["tiny.gguf"]![499]! ^= 1;
  expect(await bench.files()).toEqual(["owner/name/tiny.gguf"]);
});

test("a download that is cut off ten times resumes each time and has the right bytes", async () => {
  await using bench = await openModelBench(REPOS);
  bench.hub.faults.cutAfter = Array.from({ length: 10 }, (_, n) => 100_000 + n);
  await bench.run(ASK, "done");
  expect(await Deno.readFile(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`)).toEqual(MODEL);
  const ranges = bench.hub.transfers().map(({ headers }) => headers.get("range"));
  expect(ranges).toHaveLength(11);
  let from = 0;
  for (const [n, range] of ranges.entries()) {
    expect(range).toBe(n === 0 ? null : `bytes=${from}-`);
    from += 100_000 + n;
  }
  expect(bench.hub.transfers()[1]!.headers.get("if-range")).toBe('"e1"');
});

test("a download that ran when the server ended resumes by itself", { tags: ["M05"] }, async () => {
  await using bench = await openModelBench(REPOS);
  const held = Promise.withResolvers<void>();
  bench.hub.faults.hold = { afterBytes: 1_500_000, until: held.promise };
  const { id } = await bench.start(ASK);
  await bench.hub.untilTransfers(1);
  await expect.poll(() => bench.downloads.list()[0]!.progress?.done).toBe(1_500_000);
  await bench.restart();
  bench.hub.faults.hold = undefined;
  held.resolve();
  await bench.until(id, "done");
  expect(bench.hub.transfers().at(-1)!.headers.get("range")).toBe("bytes=1500000-");
  expect(await Deno.readFile(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`)).toEqual(MODEL);
});

test("requesting a file twice starts one download", { tags: ["M02"] }, async () => {
  await using bench = await openModelBench(REPOS);
  const held = Promise.withResolvers<void>();
  bench.hub.faults.hold = { afterBytes: 10, until: held.promise };
  const asked = await Promise.all(Array.from({ length: 5 }, () => bench.start(ASK)));
  const later = await bench.start(ASK);
  expect(new Set([...asked, later].map(({ id }) => id)).size).toBe(1);
  held.resolve();
  await bench.until(later.id, "done");
  expect(bench.hub.transfers()).toHaveLength(1);
});

test("two downloads run at once; the third waits and can be canceled meanwhile", async () => {
  await using bench = await openModelBench(REPOS);
  const held = Promise.withResolvers<void>();
  bench.hub.faults.hold = { afterBytes: 10, until: held.promise };
  const files = ["x-Q4_K_M.gguf", "x-Q8_0.gguf", "x-F16.gguf"];
  const [first, second, third] = await Promise.all(files.map((file) => bench.start({ ...ASK, file })));
  await bench.hub.untilTransfers(2);
  expect(bench.jobs.list().map(({ state }) => state).sort()).toEqual(["queued", "running", "running"]);
  expect(bench.downloads.list().find(({ state }) => state === "queued")!.detail!.files).toHaveLength(1);
  const waiting = bench.downloads.list().find(({ state }) => state === "queued")!.id;
  expect((await bench.downloads.cancel(waiting)).state).toBe("cancelled");
  held.resolve();
  for (const { id } of [first!, second!, third!]) if (id !== waiting) await bench.until(id, "done");
  expect(bench.hub.transfers()).toHaveLength(2);
});

test("canceling during the transfer removes the part and publishes one event", { tags: ["M02"] }, async () => {
  await using bench = await openModelBench(REPOS);
  const held = Promise.withResolvers<void>();
  bench.hub.faults.hold = { afterBytes: 1_000_000, until: held.promise };
  const { id } = await bench.start(ASK);
  await expect.poll(() => bench.downloads.list()[0]!.progress?.done).toBe(1_000_000);
  expect(await bench.files()).toContainEqual(expect.stringMatching(/\.part$/));
  expect((await bench.downloads.cancel(id)).state).toBe("cancelled");
  expect(await bench.files()).toEqual([]);
  await expect(bench.downloads.cancel(id)).rejects.toMatchObject({ code: "conflict" });
  held.resolve();
});

test("a download can be canceled while the hub is asked and between two attempts", { tags: ["M02"] }, async () => {
  await using bench = await openModelBench(REPOS, { limits: { retryDelayMs: 60_000, stallMs: 120_000 } });
  bench.hub.faults.failing = [503];
  const { id } = await bench.start(ASK);
  await expect.poll(() => bench.hub.requests.some(({ path }) => path.includes("/resolve/"))).toBe(true);
  expect((await bench.downloads.cancel(id)).state).toBe("cancelled");
  expect(await bench.files()).toEqual([]);
});

test.each<[string, (faults: import("../../../helpers/fakes/fake_hub.ts").HubFaults) => void, RegExp]>([
  ["wrong hash", (faults) => faults.isCorrupt = true, /its hash differs/],
  ["wrong size", (faults) => faults.isShort = true, /hub lists 3000000/],
  ["endless", (faults) => faults.isEndless = true, /hub lists 3000000/],
])(
  "%s: the download fails, leaves no file and isn't listed",
  { tags: ["M03"] },
  async (_, spoil, message) => {
    await using bench = await openModelBench(REPOS);
    spoil(bench.hub.faults);
    const { error } = await bench.run(ASK, "failed");
    expect(error).toMatchObject({ code: "upstream_error", message: expect.stringMatching(message) });
    expect((await bench.files()).filter((path) => path.includes("gguf") || path.endsWith(".part"))).toEqual([]);
    expect(await bench.local.list()).toEqual([]);
  },
);

test(
  "a file that is always cut at the same place fails after the stall limit, and its part is kept",
  { tags: ["M03"] },
  async () => {
    await using bench = await openModelBench(REPOS, { limits: { stallMs: 100 } });
    bench.hub.faults.cutAfter = [1_000_000, ...Array.from({ length: 200 }, () => 0)];
    const { error } = await bench.run(ASK, "failed");
    expect(error).toMatchObject({ code: "upstream_timeout" });
    expect(await bench.local.list()).toEqual([]);
    bench.hub.faults.cutAfter = [];
    const before = bench.hub.transfers().length;
    await bench.run(ASK, "done");
    expect(bench.hub.transfers().slice(before).map(({ headers }) => headers.get("range"))).toEqual(["bytes=1000000-"]);
  },
);

test("a server that stops sending is treated as a lost connection", { tags: ["M03"] }, async () => {
  await using bench = await openModelBench(REPOS, { limits: { idleMs: 5_000 } });
  const never = Promise.withResolvers<void>();
  bench.hub.faults.hold = { afterBytes: 1_000_000, until: never.promise };
  const { id } = await bench.start(ASK);
  await expect.poll(() => bench.downloads.list()[0]!.progress?.done).toBe(1_000_000);
  bench.hub.faults.hold = undefined;
  await bench.until(id, "done");
  expect(bench.hub.transfers().slice(0, 2).map(({ headers }) => headers.get("range"))).toEqual([
    null,
    "bytes=1000000-",
  ]);
  never.resolve();
});

test("a response with status 200 to a range request replaces the part", { tags: ["M03"] }, async () => {
  await using bench = await openModelBench(REPOS);
  bench.hub.faults.cutAfter = [1_000_000];
  bench.hub.faults.ignoreRanges = 1;
  await bench.run(ASK, "done");
  expect(await Deno.readFile(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`)).toEqual(MODEL);
});

test("a download from a server that ignores ranges and always cuts off fails", { tags: ["M03"] }, async () => {
  await using bench = await openModelBench(REPOS);
  bench.hub.faults.cutAfter = Array.from({ length: 50 }, () => 1_000_000);
  bench.hub.faults.ignoreRanges = 50;
  const { error } = await bench.run(ASK, "failed");
  expect(error?.message).toMatch(/had to start again too often/);
});

test("a file that changed on the server isn't appended to the old part", { tags: ["M03"] }, async () => {
  await using bench = await openModelBench(REPOS);
  const held = Promise.withResolvers<void>();
  bench.hub.faults.hold = { afterBytes: 1_000_000, until: held.promise };
  const { id } = await bench.start(ASK);
  await expect.poll(() => bench.downloads.list()[0]!.progress?.done).toBe(1_000_000);
  bench.hub.faults.etag = "e2";
  bench.hub.faults.hold = undefined;
  await bench.until(id, "done"); // the silence ended it
  held.resolve();
  expect(bench.hub.transfers()[1]!.headers.get("if-range")).toBe('"e1"');
  expect(await Deno.readFile(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`)).toEqual(MODEL);
});

test("a chunked response without a length is counted and verified, too", async () => {
  await using bench = await openModelBench(REPOS);
  bench.hub.faults.isChunked = true;
  bench.hub.faults.cutAfter = [500_000];
  await bench.run(ASK, "done");
  expect(await Deno.readFile(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`)).toEqual(MODEL);
});

test("503, 429, 416 and an expired signature are retried", async () => {
  await using bench = await openModelBench(REPOS);
  Object.assign(bench.hub.faults, { failing: [503, 500], rateLimited: 1, expired: 1, unsatisfiable: 1 });
  await bench.run(ASK, "done");
  expect(await Deno.readFile(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`)).toEqual(MODEL);
});

test(
  "a response that is compressed without being asked fails the download immediately, with the reason",
  { tags: ["M03"] },
  async () => {
    await using bench = await openModelBench(REPOS, { limits: { retryDelayMs: 600_000, stallMs: 3_600_000 } });
    bench.hub.faults.isPacked = true;
    const { error } = await bench.run(ASK, "failed");
    expect(error).toMatchObject({
      code: "upstream_error",
      message: expect.stringMatching(/compressed with gzip.*proxy/),
    });
    expect(await bench.local.list()).toEqual([]);
  },
);

test(
  "bytes of an earlier attempt that the disk lost are downloaded again, but only once",
  { tags: ["M05"] },
  async () => {
    await using bench = await openModelBench(REPOS, { limits: { stallMs: 100 } });
    const failHalfway = async () => {
      bench.hub.faults.cutAfter = [1_000_000, ...Array.from({ length: 200 }, () => 0)];
      await bench.run(ASK, "failed");
      bench.hub.faults.cutAfter = [];
      const [part] = (await bench.files()).filter((path) => path.endsWith(".part"));
      using file = await Deno.open(`${bench.modelsPath}/${part}`, { write: true });
      await file.seek(500_000, Deno.SeekMode.Start);
      await file.write(new Uint8Array(4096)); // as a power cut leaves it: long enough, and empty in parts
    };
    await failHalfway();
    const before = bench.hub.transfers().length;
    await bench.run(ASK, "done");
    expect(bench.hub.transfers().slice(before).map(({ headers }) => headers.get("range"))).toEqual([
      "bytes=1000000-",
      null,
    ]);
    expect(await Deno.readFile(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`)).toEqual(MODEL);

    await Deno.remove(`${bench.modelsPath}/owner`, { recursive: true });
    await failHalfway();
    bench.hub.faults.isCorrupt = true;
    const { error } = await bench.run(ASK, "failed");
    expect(error?.message).toMatch(/its hash differs/);
    expect((await bench.files()).filter((path) => path.endsWith(".part"))).toEqual([]);
  },
);

test("the token is sent to the hub, never to the CDN", { tags: ["M04"] }, async () => {
  await using bench = await openModelBench({ "owner/name": { ...REPOS["owner/name"], gated: "manual" } }, {
    token: "hf_secret",
  });
  bench.hub.tokens.hf_secret = true;
  await bench.run(ASK, "done");
  for (const { at, headers } of bench.hub.requests) {
    expect(headers.get("authorization")).toBe(at === "hub" ? "Bearer hf_secret" : null);
  }
  for (const { headers } of bench.hub.transfers()) expect(JSON.stringify([...headers])).not.toContain("hf_secret");
});

test.each([
  ["no token", undefined, /accept its terms.*owner\/name.*hub_token_file/],
  ["a token without access", "hf_plain", /has no access.*owner\/name/],
])("a gated repository with %s: the error says how to get access", async (_, token, message) => {
  await using bench = await openModelBench({ "owner/name": { ...REPOS["owner/name"], gated: "auto" } }, { token });
  bench.hub.tokens.hf_plain = false;
  const { error } = await bench.run(ASK, "failed");
  expect(error).toMatchObject({ code: "upstream_error", message: expect.stringMatching(message) });
  expect(bench.hub.transfers()).toHaveLength(0);
});

test("a redirect to a private address isn't followed", { tags: ["E03"] }, async () => {
  await using bench = await openModelBench(REPOS, { allow: ["127.0.0.2/32"] });
  const { error } = await bench.run(ASK, "failed");
  expect(error).toMatchObject({ code: "address_not_allowed" });
  expect(bench.hub.transfers()).toHaveLength(0);
});

test.each(["file:///etc/passwd", "ftp://example.org/x", "http://user:pw@127.0.0.3/x"])(
  "a redirect to %s ends the download",
  { tags: ["E03"] },
  async (address) => {
    await using bench = await openModelBench(REPOS);
    bench.hub.faults.redirectTo = address;
    expect((await bench.run(ASK, "failed")).error).toMatchObject({ code: "address_not_allowed" });
  },
);

test("a download fails after five redirects", { tags: ["E03"] }, async () => {
  await using bench = await openModelBench(REPOS);
  bench.hub.faults.redirectTo = `${bench.hub.url}/owner/name/resolve/main/x-Q4_K_M.gguf`;
  expect((await bench.run(ASK, "failed")).error?.message).toMatch(/too many redirects/);
  expect(bench.hub.requests.filter(({ path }) => path.includes("/resolve/"))).toHaveLength(6);
});

test("the commit is fixed when the download is requested", async () => {
  await using bench = await openModelBench(REPOS);
  bench.hub.faults.cutAfter = [1_000_000];
  const { id } = await bench.start(ASK);
  const first = bench.hub.commit;
  bench.hub.commit = "2".repeat(40);
  await bench.until(id, "done");
  const resolves = bench.hub.requests.filter(({ path }) => path.includes("/resolve/"));
  expect(resolves.every(({ path }) => path.includes(`/resolve/${first}/`))).toBe(true);
});

test("any shard starts the download of all, and they appear together", async () => {
  const shard = (n: number) => ggufFile({ sizeBytes: 50_000 + n });
  const names = [1, 2, 3].map((n) => `BF16/big-0000${n}-of-00003.gguf`);
  const files = Object.fromEntries(names.map((name, n) => [name, shard(n)]));
  await using bench = await openModelBench({ "owner/name": { files } });
  const held = Promise.withResolvers<void>();
  bench.hub.faults.hold = { afterBytes: 10, until: held.promise };
  const { id } = await bench.start({ ...ASK, file: names[1]! });
  expect((await bench.start({ ...ASK, file: names[2]! })).id).toBe(id);
  await bench.hub.untilTransfers(1);
  expect(await bench.local.list()).toEqual([]);
  held.resolve();
  await bench.until(id, "done");
  expect(await bench.local.list()).toMatchObject([{
    path: `owner/name/${names[0]}`,
    sizeBytes: 150_003,
    files: names.map((name) => `owner/name/${name}`),
  }]);
});

test("an MLX download is the whole repository without code, and is listed only when complete", async () => {
  const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
  const files = {
    "config.json": json({ model_type: "qwen3", max_position_embeddings: 40960, quantization: { bits: 4 } }),
    "model.safetensors.index.json": json({
      metadata: { total_parameters: 600_000_000 },
      weight_map: { a: "model-00001-of-00002.safetensors", b: "model-00002-of-00002.safetensors" },
    }),
    "model-00001-of-00002.safetensors": ggufFile({ sizeBytes: 20_000 }),
    "model-00002-of-00002.safetensors": ggufFile({ sizeBytes: 20_001 }),
    "tokenizer.json": json({ version: "1.0" }),
    "modeling.py": new TextEncoder().encode("import os"),
    "README.md": new TextEncoder().encode("# MLX"),
  };
  await using bench = await openModelBench({ "mlx-community/small": { files, tags: ["mlx"] } });
  await bench.run({ repo: "mlx-community/small", format: "mlx" }, "done");
  expect(await bench.files()).toEqual(
    Object.keys(files).filter((name) => !/\.(py|md)$/.test(name)).map((name) => `mlx-community/small/${name}`).sort(),
  );
  expect(await bench.local.list()).toMatchObject([{
    path: "mlx-community/small",
    format: "mlx",
    quantization: "4-bit",
    parameters: 600_000_000,
    architecture: "qwen3",
    contextSize: 40960,
  }]);
  await Deno.remove(`${bench.modelsPath}/mlx-community/small/model-00002-of-00002.safetensors`);
  expect(await bench.local.list()).toEqual([]);
});

test("an MLX model with a missing file of weights is rejected before anything is written", async () => {
  const files = Object.fromEntries(
    ["config.json", "model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"].map((
      name,
    ) => [name, MODEL]),
  );
  await using bench = await openModelBench({ "owner/name": { files, tags: ["mlx"] } });
  await expect(bench.start({ repo: "owner/name", format: "mlx" })).rejects.toMatchObject({
    code: "unprocessable",
    message: expect.stringContaining('"model-00002-of-00003.safetensors" are missing'),
  });
  expect(await bench.files().catch(() => [])).toEqual([]);
});

test("a model that exists already is verified and not downloaded again", async () => {
  await using bench = await openModelBench(REPOS);
  await bench.run(ASK, "done");
  await bench.run(ASK, "done");
  expect(bench.hub.transfers()).toHaveLength(1);
  await Deno.writeFile(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`, new Uint8Array(MODEL.length));
  await bench.run(ASK, "done");
  expect(bench.hub.transfers()).toHaveLength(2);
  expect(await Deno.readFile(`${bench.modelsPath}/owner/name/x-Q4_K_M.gguf`)).toEqual(MODEL);
});

test("parts of failed downloads are removed on request, and parts without a job at the start", async () => {
  await using bench = await openModelBench(REPOS, { limits: { stallMs: 50 } });
  bench.hub.faults.cutAfter = [1_000_000, ...Array.from({ length: 50 }, () => 0)];
  await bench.run(ASK, "failed");
  expect((await bench.files()).some((path) => path.endsWith(".part"))).toBe(true);
  await Deno.mkdir(`${bench.modelsPath}/.parts/unknown`);
  await Deno.writeTextFile(`${bench.modelsPath}/.parts/unknown/0.part`, "x");
  await bench.restart();
  await expect.poll(() => bench.files().then((files) => files.filter((path) => path.includes("unknown"))))
    .toEqual([]);
  expect((await bench.files()).some((path) => path.endsWith(".part"))).toBe(true);
  expect(await bench.downloads.dropFailed("owner/name/x-Q4_K_M.gguf")).toBe(true);
  expect(bench.downloads.list()).toEqual([]);
  expect(await bench.downloads.dropFailed("owner/name/x-Q4_K_M.gguf")).toBe(false);
  expect(await bench.files()).toEqual([]);
});

test("a models folder that can't be written fails the job with a reason", { tags: ["M05"] }, async () => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/models`, "a file in its place");
  await using bench = await openModelBench(REPOS, { modelsPath: `${folder}/models` });
  const { error } = await bench.run(ASK, "failed");
  expect(error).toMatchObject({ code: "internal", message: expect.stringContaining(`${folder}/models`) });
  await Deno.remove(folder, { recursive: true });
});

test("a link in place of the model's folder isn't followed", { tags: ["P02"] }, async () => {
  await using bench = await openModelBench(REPOS);
  const outside = await Deno.makeTempDir();
  await Deno.mkdir(bench.modelsPath, { recursive: true });
  await Deno.symlink(outside, `${bench.modelsPath}/owner`);
  const { error } = await bench.run(ASK, "failed");
  expect(error?.message).toMatch(/isn't a folder/);
  expect(await Array.fromAsync(Deno.readDir(outside))).toEqual([]);
  await Deno.remove(outside, { recursive: true });
});

test("a web page under the name of a model is rejected", async () => {
  const page = new TextEncoder().encode("<html>".padEnd(5_000, "x"));
  await using bench = await openModelBench({ "owner/name": { files: { "x.gguf": page } } });
  expect((await bench.run({ ...ASK, file: "x.gguf" }, "failed")).error?.message).toMatch(/didn't send a GGUF file/);
  expect(await bench.local.list()).toEqual([]);
});

test.each([
  "../x.gguf",
  "a/../../x.gguf",
  "/etc/x.gguf",
  "a\\b.gguf",
  "a\0b.gguf",
  "..%2fx.gguf",
  "x.safetensors",
  "imatrix.gguf",
  ".hidden.gguf",
  "a//b.gguf",
  "CON/x.gguf",
  `${"a".repeat(300)}.gguf`,
])("rejects %j as a file before asking the hub", { tags: ["M01"] }, async (file) => {
  await using bench = await openModelBench(REPOS);
  await expect(bench.start({ ...ASK, file })).rejects.toMatchObject({ code: "invalid_request" });
  expect(bench.hub.requests).toEqual([]);
  expect(await bench.files().catch(() => [])).toEqual([]);
});

test.each(["../x", "a/../b", "/etc", "a\\b", "a/b/c", "a/b\0", "%2e%2e/x", "a/..", "", "a/", "owner/.parts"])(
  "rejects %j as a repository",
  { tags: ["M01"] },
  async (repo) => {
    await using bench = await openModelBench(REPOS);
    await expect(bench.start({ ...ASK, repo })).rejects.toMatchObject({ code: "invalid_request" });
    expect(bench.hub.requests).toEqual([]);
  },
);

test("file names of the hub are validated, too", { tags: ["M01"] }, async () => {
  const files = { "../../evil.json": MODEL, "config.json": MODEL, "model.safetensors": MODEL };
  await using bench = await openModelBench({ "owner/name": { files } });
  await expect(bench.start({ repo: "owner/name", format: "mlx" })).rejects.toMatchObject({ code: "unprocessable" });
  expect(await bench.files().catch(() => [])).toEqual([]);
});
