import { describe, expect, test } from "vitest";
import { createEventHub } from "../../../../services/events/event_hub.ts";
import { LocalModels } from "../../../../services/models/local/local_models.ts";
import { ModelsFolder } from "../../../../services/models/local/models_folder.ts";
import type { RunnerTimes } from "../../../../services/models/runner/llama_server.ts";
import { type OfferedConnection, Runner, type RunnerState } from "../../../../services/models/runner/runner.ts";
import { fakeLlamaServer, type LlamaMode } from "../../../helpers/fakes/llm/fake_llama_server.ts";
import { ggufFile } from "../../../helpers/files/gguf_file.ts";
import { commandLineOf, findProcesses, isGone } from "../../../helpers/processes/processes.ts";
import { tempFolder } from "../../../helpers/files/storage_folder.ts";

const MODEL = "owner/name/x-Q4_K_M.gguf";
/** Short intervals, and limits that a busy machine doesn't reach. */
const QUICK: RunnerTimes = {
  startMs: 120_000,
  startPollMs: 20,
  watchMs: 50,
  healthMs: 20_000,
  restartMs: 10,
  leftMs: 600_000,
};

async function openBench(mode: LlamaMode | undefined, times: Partial<RunnerTimes> = {}) {
  const temp = await tempFolder();
  const folder = new ModelsFolder(`${temp.path}/models`);
  await Deno.mkdir(folder.resolve("owner/name"), { recursive: true });
  const head = { "general.architecture": "llama", "general.name": "Little", "llama.context_length": 32768 };
  await Deno.writeFile(folder.resolve(MODEL), ggufFile({ keys: head }));
  const events = createEventHub(() => {});
  const offered: OfferedConnection[] = [];
  const programPath = mode === undefined ? `${temp.path}/nothing` : await fakeLlamaServer(temp.path, mode);
  const open = () =>
    new Runner({
      dataDir: temp.path,
      folder,
      local: new LocalModels(folder, () => {}),
      programPath,
      events,
      log: () => {},
      times: { ...QUICK, ...times },
      offer: (connection) => Promise.resolve(void offered.push(connection)),
    });
  let runner = open();
  return {
    folder,
    offered,
    /** What the next Parlor reads about the server. */
    record: `${temp.path}/model-server/server.json`,
    get runner() {
      return runner;
    },
    async until(state: RunnerState) {
      const reached = Promise.withResolvers<void>();
      const look = async () => {
        if ((await runner.getStatus()).state === state) reached.resolve();
      };
      const end = events.subscribe(() => void look());
      await look();
      await reached.promise;
      end();
      return await runner.getStatus();
    },
    async restart(options: { leave?: boolean } = {}) {
      await runner.close(options);
      runner = open();
    },
    async pid() {
      const port = new URL(offered.at(-1)!.baseUrl).port;
      const [pid] = await findProcesses(`--port ${port} --ctx-size`);
      if (pid === undefined) throw new Error(`No process listens for the model on port ${port}`);
      return pid;
    },
    async [Symbol.asyncDispose]() {
      await runner.close();
      await temp[Symbol.asyncDispose]();
    },
  };
}

const ask = (runner: Runner) => runner.wake(new AbortController().signal);

test("a model is started, available as a connection with its own key, and stopped", async () => {
  await using bench = await openBench("good");
  expect(await bench.runner.getStatus()).toMatchObject({ state: "stopped", log: [] });
  const started = await bench.runner.run({ path: MODEL, gpuLayers: 3 }, { activate: true });
  expect(started).toMatchObject({ state: "starting", settings: { path: MODEL, contextSize: 8192, gpuLayers: 3 } });
  const running = await bench.until("running");
  expect(running.log).toEqual([`main: loading model from ${bench.folder.resolve(MODEL)}, context 8192`]);
  expect(running.startedAtMs).toBeGreaterThan(0);
  expect(bench.offered).toEqual([{
    name: "Little",
    model: "x-Q4_K_M.gguf",
    contextSize: 8192,
    activate: true,
    apiKey: expect.stringMatching(/^[\w-]{32}$/),
    baseUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v1$/),
  }]);
  await expect.poll(async () => (await bench.runner.getStatus()).memoryBytes ?? 0).toBeGreaterThan(1_000_000);
  expect(bench.runner.isUsing(MODEL)).toBe(true);
  const pid = await bench.pid();
  expect(await bench.runner.stop()).toMatchObject({ state: "stopped" });
  expect(await isGone(pid)).toBe(true);
  expect(bench.runner.isUsing(MODEL)).toBe(false);
});

test("doesn't pass the key as an argument, which every user of the machine could read", async () => {
  await using bench = await openBench("good");
  await bench.runner.run({ path: MODEL });
  await bench.until("running");
  const commandLine = await commandLineOf(await bench.pid());
  expect(commandLine).toContain("--model");
  expect(commandLine).not.toContain(bench.offered[0]!.apiKey);
});

test("a program that ends immediately fails with its last output", async () => {
  await using bench = await openBench("broken");
  await bench.runner.run({ path: MODEL });
  const failed = await bench.until("failed");
  expect(failed.error).toBe("llama-server ended with code 1");
  expect(failed.log.at(-1)).toBe("error: tensor 'blk.0' has wrong shape");
  expect(bench.offered).toEqual([]);
  await expect(ask(bench.runner)).rejects.toMatchObject({ code: "not_available" });
});

test("a program that never becomes ready fails and is killed", async () => {
  await using bench = await openBench("stuck", { startMs: 500 });
  await bench.runner.run({ path: MODEL });
  expect((await bench.until("failed")).error).toMatch(/wasn't ready after/);
});

test("a crashed program is restarted at a new address, and fails if it keeps crashing", async () => {
  await using bench = await openBench("fragile");
  await bench.runner.run({ path: MODEL }, { activate: true });
  const failed = await bench.until("failed");
  expect(failed).toMatchObject({ restarts: 3, error: expect.stringMatching(/code 3; stopped after 3 restarts$/) });
  expect(bench.offered).toHaveLength(4);
  expect(bench.offered.map(({ activate }) => activate)).toEqual([true, false, false, false]);
  expect(new Set(bench.offered.map(({ apiKey }) => apiKey)).size).toBe(4);
});

test("a program that hangs is ended and started again", async () => {
  await using bench = await openBench("hung", { healthMs: 50 });
  await bench.runner.run({ path: MODEL });
  // Only a program that was running is started again. It runs too shortly to be seen each time.
  await expect.poll(async () => (await bench.runner.getStatus()).restarts).toBeGreaterThan(0);
});

test("a program that ignores SIGTERM is still ended", async () => {
  await using bench = await openBench("stubborn");
  await bench.runner.run({ path: MODEL });
  await bench.until("running");
  const pid = await bench.pid();
  await bench.runner.stop();
  expect(await isGone(pid)).toBe(true);
});

test("an idle model is stopped, and the next chat starts it again", async () => {
  await using bench = await openBench("good");
  await bench.runner.run({ path: MODEL, idleMinutes: 0.001 });
  // It may have stopped before it is seen running.
  await bench.until("stopped");
  expect(bench.offered).toHaveLength(1);
  await ask(bench.runner); // until it runs, which it does shortly
  expect(bench.offered).toHaveLength(2);
});

test("a generating model isn't idle, however long it takes", async () => {
  await using bench = await openBench("busy", { watchMs: 10 });
  await bench.runner.run({ path: MODEL, idleMinutes: 0.0001 });
  await bench.until("running");
  await expect.poll(async () => (await bench.runner.getStatus()).memoryBytes).toBeDefined();
  expect((await bench.runner.getStatus()).state).toBe("running");
});

test("a chat after a restart starts the model again; after Stop it says that it is stopped", async () => {
  await using bench = await openBench("good");
  await bench.runner.run({ path: MODEL, contextSize: 512 });
  await bench.until("running");
  await bench.restart();
  await Promise.all([ask(bench.runner), ask(bench.runner)]);
  expect(await bench.runner.getStatus()).toMatchObject({
    state: "running",
    settings: { path: MODEL, contextSize: 512 },
  });
  await bench.runner.stop();
  await expect(ask(bench.runner)).rejects.toMatchObject({
    code: "not_available",
    message: expect.stringMatching(/Start it/),
  });
});

describe.skipIf(Deno.build.os === "windows")("a server that was left running", () => {
  async function openLeft(change: (record: Record<string, unknown>) => void = () => {}) {
    const bench = await openBench("good");
    await bench.runner.run({ path: MODEL, contextSize: 512 });
    await bench.until("running");
    const pid = await bench.pid();
    await bench.restart({ leave: true });
    expect(await isGone(pid)).toBe(false);
    const record = JSON.parse(await Deno.readTextFile(bench.record));
    change(record);
    await Deno.writeTextFile(bench.record, JSON.stringify(record));
    return Object.assign(bench, { leftPid: pid });
  }

  test("is taken over with its address and key, and stopped", async () => {
    await using bench = await openLeft();
    await ask(bench.runner);
    expect(await bench.runner.getStatus()).toMatchObject({
      state: "running",
      settings: { path: MODEL, contextSize: 512 },
      startedAtMs: expect.any(Number),
    });
    expect(bench.offered).toHaveLength(2);
    const { activate: _, ...first } = bench.offered[0]!;
    expect(bench.offered[1]).toMatchObject(first);
    expect(await bench.pid()).toBe(bench.leftPid);
    await expect.poll(async () => (await bench.runner.getStatus()).memoryBytes ?? 0).toBeGreaterThan(1_000_000);
    await bench.runner.stop();
    expect(await isGone(bench.leftPid)).toBe(true);
    await expect(Deno.stat(bench.record)).rejects.toBeInstanceOf(Deno.errors.NotFound);
  });

  test("can be stopped before anything else has used it", async () => {
    await using bench = await openLeft();
    await bench.runner.stop();
    expect(await isGone(bench.leftPid)).toBe(true);
  });

  test("is started again if it ends afterwards", async () => {
    await using bench = await openLeft();
    await bench.until("running");
    Deno.kill(bench.leftPid, "SIGKILL");
    await expect.poll(async () => (await bench.runner.getStatus()).restarts).toBe(1);
    await bench.until("running");
    expect(await bench.pid()).not.toBe(bench.leftPid);
  });

  test.for<[string, (record: Record<string, unknown>) => void]>([
    ["another process has its ID", (record) => record.startedAtMs = Date.now() - 86_400_000],
    ["it doesn't know the key", (record) => record.apiKey = "other"],
    ["another version has written about it", (record) => record.settings = { path: MODEL, contextSize: "512" }],
  ])("isn't used if %s", async ([, change]) => {
    await using bench = await openLeft(change);
    expect((await bench.runner.getStatus()).state).toBe("stopped");
    await ask(bench.runner);
    expect(await bench.pid()).not.toBe(bench.leftPid);
    await expect.poll(() => isGone(bench.leftPid), { timeout: 60_000 }).toBe(true);
  });

  test("ends if its model was deleted", async () => {
    await using bench = await openLeft();
    await Deno.remove(bench.folder.resolve(MODEL));
    expect((await bench.runner.getStatus()).state).toBe("stopped");
    expect(await isGone(bench.leftPid)).toBe(true);
  });
});

test("a client that waits for a loading model can disconnect, and the model keeps loading", async () => {
  await using bench = await openBench("stuck");
  await bench.runner.run({ path: MODEL });
  const client = new AbortController();
  const waiting = bench.runner.wake(client.signal);
  client.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  expect((await bench.runner.getStatus()).state).toBe("starting");
});

test("another model replaces the running one", async () => {
  await using bench = await openBench("good");
  await Deno.writeFile(bench.folder.resolve("other.gguf"), ggufFile());
  await bench.runner.run({ path: MODEL });
  await bench.until("running");
  const pid = await bench.pid();
  await bench.runner.run({ path: "other.gguf" });
  expect(await isGone(pid)).toBe(true);
  expect((await bench.until("running")).settings?.path).toBe("other.gguf");
});

test("without the program, the response explains how to install it and which command to type", async () => {
  await using bench = await openBench(undefined);
  await expect(bench.runner.run({ path: MODEL })).rejects.toMatchObject({
    code: "not_available",
    message: expect.stringMatching(/brew install llama\.cpp.*llama_server_path/),
  });
  expect(await bench.runner.getStatus()).toMatchObject({ state: "stopped", program: null, advice: expect.any(String) });
  expect(await bench.runner.createCommand(MODEL)).toBe(
    `llama-server --model ${bench.folder.resolve(MODEL)} --alias x-Q4_K_M.gguf --host 127.0.0.1 --port 8080 ` +
      "--ctx-size 8192 --parallel 1",
  );
});

test.each(["missing.gguf", "../x.gguf"])("%s can't be run", async (path) => {
  await using bench = await openBench("good");
  await expect(bench.runner.run({ path })).rejects.toMatchObject({
    code: expect.stringMatching(/^(not_found|invalid_request)$/),
  });
});
