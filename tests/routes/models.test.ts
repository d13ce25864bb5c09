import { expect, test } from "vitest";
import { openFakeHub, sha256 } from "../helpers/fakes/fake_hub.ts";
import { fakeLlamaServer } from "../helpers/fakes/llm/fake_llama_server.ts";
import { ggufFile } from "../helpers/files/gguf_file.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

const MODEL = ggufFile({ sizeBytes: 300_000, keys: { "general.architecture": "llama" }, tensors: [[1000, 1000]] });
const PATH = "owner/name/x-Q4_K_M.gguf";

async function openBench() {
  const hub = openFakeHub({
    "owner/name": { files: { "x-Q4_K_M.gguf": MODEL, "mmproj-F16.gguf": MODEL.slice() }, license: "mit", downloads: 7 },
  });
  const app = await openTestApp({ config: { hubUrl: hub.url, guardAllow: ["127.0.0.2/31"] } });
  return {
    hub,
    app,
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await hub[Symbol.asyncDispose]();
    },
  };
}

const json = async (answer: Promise<Response>, status = 200) => {
  const found = await answer;
  const body = found.status === 204 ? undefined : await found.json();
  expect([found.status, body?.error]).toEqual([status, status < 400 ? undefined : expect.anything()]);
  return body;
};
const ask = { repo: "owner/name", format: "gguf", file: "x-Q4_K_M.gguf" };
const untilDone = (app: TestApp) =>
  expect.poll(async () => (await json(app.get("/api/models/downloads")))[0].state).toBe("done");

test("searches the hub, lists files, downloads one, finds it on disk, deletes it", async () => {
  await using bench = await openBench();
  const { app, hub } = bench;
  expect(await json(app.get("/api/models/browse?q=name&format=gguf"))).toEqual({
    items: [{
      repo: "owner/name",
      downloads: 7,
      likes: 3,
      updated_at: "2026-08-01T10:00:00.000Z",
      gated: false,
      license: "mit",
      tags: ["gguf", "license:mit"],
    }],
    next_cursor: null,
  });
  expect(await json(app.get("/api/models/browse/files?repo=owner/name&format=gguf"))).toEqual({
    repo: "owner/name",
    revision: hub.commit,
    gated: false,
    license: "mit",
    url: `${hub.url}/owner/name`,
    has_code: false,
    files: [
      { path: "x-Q4_K_M.gguf", size_bytes: 300_000, sha256: sha256(MODEL), quantization: "Q4_K_M", role: "model" },
      { path: "mmproj-F16.gguf", size_bytes: 300_000, sha256: sha256(MODEL), quantization: "F16", role: "mmproj" },
    ],
  });
  const { format: _, ...withoutFormat } = ask;
  const job = await json(app.post("/api/models/download", withoutFormat), 202);
  expect(job).toMatchObject({
    ...ask,
    revision: hub.commit,
    total_bytes: 300_000,
    files: [{ path: "x-Q4_K_M.gguf", size_bytes: 300_000, sha256: sha256(MODEL) }],
  });
  await untilDone(app);
  expect(await json(app.get("/api/models/downloads"))).toMatchObject([
    { id: job.id, state: "done", received_bytes: 300_000, bytes_per_second: 0 },
  ]);
  expect(await json(app.get(`/api/jobs/${job.id}`))).toMatchObject({ kind: "model_download", state: "done" });
  expect(await json(app.get("/api/models/local"))).toEqual([{
    path: PATH,
    repo: "owner/name",
    format: "gguf",
    role: "model",
    size_bytes: 300_000,
    quantization: "Q4_K_M",
    architecture: "llama",
    parameters: 1_000_000,
    chat_template: false,
    modified_at: expect.stringMatching(/Z$/),
  }]);
  await json(app.delete(`/api/models/local?path=${encodeURIComponent(PATH)}`), 204);
  expect(await json(app.get("/api/models/local"))).toEqual([]);
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/models`))).toMatchObject([{ name: ".parts" }]);
  await json(app.delete(`/api/models/local?path=${encodeURIComponent(PATH)}`), 404);
});

test.each([
  ["x-Q4_K_M.gguf", 7, "Q8_0"],
  ["x.gguf", 15, "Q4_K_M"],
  ["x-UD-Q4_K_XL.gguf", 15, "UD-Q4_K_XL"],
  ["x-Q5_K_M.gguf", 999, "Q5_K_M"],
])(
  "the quantization of %s with file type %d is %s, because the file takes precedence over its name",
  async (name, type, expected) => {
    await using app = await openTestApp();
    const keys = { "general.architecture": "llama", "general.file_type": type };
    await Deno.writeFile(`${app.dataDir}/models/${name}`, ggufFile({ sizeBytes: 1000, keys }));
    expect(await json(app.get("/api/models/local"))).toMatchObject([{ path: name, quantization: expected }]);
  },
);

test("programs in an MLX repository are reported", async () => {
  await using bench = await openBench();
  const files = { "config.json": MODEL, "model.safetensors": MODEL, "modeling.py": MODEL };
  bench.hub.repos["owner/mlx"] = { files, tags: ["mlx"] };
  expect(await json(bench.app.get("/api/models/browse/files?repo=owner/mlx&format=mlx"))).toMatchObject({
    has_code: true,
    files: [{ path: "model.safetensors" }, { path: "config.json" }],
  });
  expect(await json(bench.app.get("/api/models/browse/files?repo=owner/mlx&format=gguf"))).toMatchObject({
    has_code: false,
  });
});

test("every change of a download is an event, so that all devices can show it", async () => {
  await using bench = await openBench();
  const seen: string[] = [];
  bench.app.services.events.subscribe(({ kind, id }) => void seen.push(`${kind} ${id}`));
  const { id } = await json(bench.app.post("/api/models/download", ask), 202);
  await untilDone(bench.app);
  expect(seen.filter((event) => event === `job ${id}`).length).toBeGreaterThanOrEqual(4);
});

test(
  "a download can be canceled once; a file that is being downloaded can't be deleted",
  { tags: ["M02"] },
  async () => {
    await using bench = await openBench();
    const { app, hub } = bench;
    const held = Promise.withResolvers<void>();
    hub.faults.hold = { afterBytes: 1000, until: held.promise };
    const { id } = await json(app.post("/api/models/download", ask), 202);
    await hub.untilTransfers(1);
    await json(app.delete(`/api/models/local?path=${encodeURIComponent(PATH)}`), 409);
    expect(await json(app.post(`/api/models/downloads/${id}/cancel`))).toMatchObject({ id, state: "cancelled" });
    await json(app.post(`/api/models/downloads/${id}/cancel`), 409);
    await json(app.post("/api/models/downloads/unknown/cancel"), 404);
    held.resolve();
  },
);

test.each([
  [{ ...ask, repo: "../x" }, 400],
  [{ ...ask, file: "../../etc/passwd" }, 400],
  [{ ...ask, file: "x\0.gguf" }, 400],
  [{ ...ask, file: "x.bin" }, 400],
  [{ ...ask, format: "onnx" }, 400],
  [{ repo: "owner/name", format: "gguf" }, 400],
  [{ ...ask, format: "mlx" }, 400],
  [{ repo: "owner/name", format: "mlx" }, 422],
  [{ ...ask, file: "missing.gguf" }, 404],
  [{ ...ask, repo: "owner/missing" }, 404],
])("a download of %j gets %d, and nothing is written", { tags: ["M01"] }, async (body, status) => {
  await using bench = await openBench();
  await json(bench.app.post("/api/models/download", body), status);
  expect(await json(bench.app.get("/api/models/downloads"))).toEqual([]);
  expect(await Array.fromAsync(Deno.readDir(`${bench.app.dataDir}/models`))).toEqual([]);
});

test.each(["../app.db", "/etc/passwd", ".parts", "a/../../app.db", "..%2fapp.db", ".", "owner"])(
  "%j can't be deleted as a model",
  { tags: ["M01"] },
  async (path) => {
    await using bench = await openBench();
    await Deno.mkdir(`${bench.app.dataDir}/models/owner`, { recursive: true });
    const { status } = await bench.app.delete(`/api/models/local?path=${encodeURIComponent(path)}`);
    expect([400, 404]).toContain(status);
    expect((await Deno.stat(`${bench.app.dataDir}/models/owner`)).isDirectory).toBe(true);
  },
);

test("an unreachable hub gets 502 everywhere, and models on disk are still listed", async () => {
  await using bench = await openBench();
  await bench.hub[Symbol.asyncDispose]();
  await json(bench.app.get("/api/models/browse?q=x&format=mlx"), 502);
  await json(bench.app.get("/api/models/browse/files?repo=owner/name&format=gguf"), 502);
  await json(bench.app.post("/api/models/download", ask), 502);
  expect(await json(bench.app.get("/api/models/local"))).toEqual([]);
});

test("a model runs as the connection local, which becomes active if requested", async () => {
  const folder = await Deno.makeTempDir({ prefix: "parlor-llama-" });
  const llamaServerPath = await fakeLlamaServer(folder, "good");
  {
    await using app = await openTestApp({ config: { llamaServerPath } });
    await Deno.writeFile(`${app.dataDir}/models/small.gguf`, MODEL);
    expect(await json(app.get("/api/models/local/runner?path=small.gguf"))).toMatchObject({
      state: "stopped",
      program: llamaServerPath,
      connection_id: "local",
      restarts: 0,
      log: [],
      command: expect.stringMatching(/llama-server --model .*small\.gguf/),
    });
    const body = { path: "small.gguf", context_size: 2048, gpu_layers: 0, idle_minutes: 5, activate: true };
    expect(await json(app.post("/api/models/local/run", body), 202)).toMatchObject({
      state: "starting",
      path: "small.gguf",
      context_size: 2048,
      gpu_layers: 0,
      idle_minutes: 5,
    });
    const state = async () => (await json(app.get("/api/models/local/runner"))).state;
    await expect.poll(state).toBe("running");
    const [local] = (await json(app.get("/api/connections"))).filter(({ id }: { id: string }) => id === "local");
    expect(local).toMatchObject({ name: "small.gguf (this machine)", active: true, has_key: true, context_size: 2048 });
    expect((await json(app.get("/api/models"))).data).toEqual([{ id: "small.gguf" }]);
    await json(app.delete("/api/models/local?path=small.gguf"), 204);
    expect(await state()).toBe("stopped");
    await json(app.delete("/api/connections/local"), 204);
  }
  await Deno.remove(folder, { recursive: true });
});

test("without llama-server a run gets 503 with instructions to install it", async () => {
  await using app = await openTestApp({ config: { llamaServerPath: "/nowhere/llama-server" } });
  await Deno.writeFile(`${app.dataDir}/models/small.gguf`, MODEL);
  const { error } = await json(app.post("/api/models/local/run", { path: "small.gguf" }), 503);
  expect(error).toMatchObject({ code: "not_available", message: expect.stringMatching(/llama\.cpp/) });
  expect(await json(app.get("/api/models/local/runner"))).toMatchObject({ program: null, advice: expect.any(String) });
});
