import { expect, test } from "vitest";
import { AppError } from "../../../services/errors.ts";
import type { JobKind } from "../../../services/jobs/job_store.ts";
import { heldKind, jobBench } from "../../helpers/processes/storage_jobs.ts";

const stateRows = "SELECT id, state FROM job ORDER BY created_at, id";

test("a job goes from queued through running and verifying to done, and each step is announced", async () => {
  await using bench = await jobBench();
  const held = heldKind();
  const jobs = bench.open({ download: held });
  const seen: string[] = [];
  bench.events.subscribe(({ kind, id }) => seen.push(`${kind} ${jobs.get(id).state}`));
  const started = await jobs.start("download", { title: "a model", params: { repo: "r", file: "f" } });
  expect(started).toMatchObject({ kind: "download", title: "a model", state: "queued", progress: null });
  expect(started).not.toHaveProperty("params");
  await held.untilBegun(1);
  expect(held.begun[0]).toMatchObject({ id: started.id, params: { repo: "r", file: "f" }, isResumed: false });
  held.release(started.id);
  await bench.until(jobs, started.id, "done");
  expect(seen).toEqual(["job queued", "job running", "job verifying", "job done"]);
  await jobs.close();
  expect(bench.db.all(stateRows)).toEqual([{ id: started.id, state: "done" }]);
});

test("progress and detail are visible immediately and stored with the next step", async () => {
  await using bench = await jobBench();
  const held = heldKind();
  const jobs = bench.open({ download: held });
  const { id } = await jobs.start("download", { title: "t", params: null });
  await held.untilBegun(1);
  held.begun[0]!.progress({ done: 3, total: 10, unit: "bytes" });
  held.begun[0]!.detail({ files: ["a"] });
  expect(jobs.get(id)).toMatchObject({ progress: { done: 3, total: 10, unit: "bytes" }, detail: { files: ["a"] } });
  held.release(id);
  await bench.until(jobs, id, "done");
  await jobs.close();
  const after = bench.open({});
  expect(after.get(id)).toMatchObject({ state: "done", progress: { done: 3 }, detail: { files: ["a"] } });
});

test("a finished job keeps its progress and time, whatever its run still reports", async () => {
  await using bench = await jobBench();
  const held = heldKind();
  let nowMs = 1_000_000;
  const jobs = bench.open({ download: held }, () => nowMs);
  const { id } = await jobs.start("download", { title: "t", params: null });
  await held.untilBegun(1);
  const [run] = held.begun;
  const progress = { done: 3, total: 10, unit: "bytes" as const };
  run!.progress(progress);
  held.release(id);
  await bench.until(jobs, id, "done");
  const ended = jobs.get(id);
  nowMs += 60_000;
  progress.done = 9;
  run!.progress({ done: 10, total: 10, unit: "bytes" });
  run!.detail({ late: true });
  expect(jobs.get(id)).toEqual(ended);
  expect(ended.progress).toMatchObject({ done: 3 });
  await jobs.close();
  expect(bench.open({}, () => nowMs).get(id)).toMatchObject({
    progress: ended.progress,
    updatedAtMs: ended.updatedAtMs,
  });
});

test("progress is announced at most four times a second", async () => {
  await using bench = await jobBench();
  const held = heldKind();
  let nowMs = 1_000_000;
  const jobs = bench.open({ download: held }, () => nowMs);
  const { id } = await jobs.start("download", { title: "t", params: null });
  await held.untilBegun(1);
  let count = 0;
  bench.events.subscribe(() => count++);
  for (let done = 0; done < 1000; done++) {
    nowMs += 1;
    held.begun[0]!.progress({ done, total: null, unit: "bytes" });
  }
  expect(count).toBe(4);
  held.release(id);
  await jobs.close();
});

test("the last progress before a pause is announced, even if it follows the previous one immediately", async () => {
  await using bench = await jobBench();
  const held = heldKind();
  const jobs = bench.open({ download: held });
  const { id } = await jobs.start("download", { title: "t", params: null });
  await held.untilBegun(1);
  const announced = Promise.withResolvers<unknown>();
  bench.events.subscribe(() => jobs.get(id).progress?.done === 5 && announced.resolve(undefined));
  held.begun[0]!.progress({ done: 1, total: 10, unit: "bytes" });
  queueMicrotask(() => held.begun[0]!.progress({ done: 5, total: 10, unit: "bytes" }));
  await announced.promise;
  held.release(id);
  await jobs.close();
});

test("each kind runs a limited number of jobs in their order, independent of other kinds", async () => {
  await using bench = await jobBench();
  const [narrow, wide] = [heldKind({ parallel: 2 }), heldKind()];
  const jobs = bench.open({ narrow, wide });
  const ids: string[] = [];
  for (let n = 0; n < 4; n++) ids.push((await jobs.start("narrow", { title: String(n), params: n })).id);
  await jobs.start("wide", { title: "w", params: null });
  await Promise.all([narrow.untilBegun(2), wide.untilBegun(1)]);
  expect(ids.map((id) => jobs.get(id).state)).toEqual(["running", "running", "queued", "queued"]);
  narrow.release(ids[1]!);
  await narrow.untilBegun(3);
  expect(narrow.begun.map(({ params }) => params)).toEqual([0, 1, 2]);
  expect(jobs.get(ids[3]!).state).toBe("queued");
  await jobs.close();
});

test("an error fails the job, with the message of an AppError, but not of a defect", async () => {
  await using bench = await jobBench();
  const held = heldKind({ parallel: 2 });
  const jobs = bench.open({ download: held });
  const known = await jobs.start("download", { title: "t", params: null });
  const defect = await jobs.start("download", { title: "t", params: null });
  await held.untilBegun(2);
  held.release(known.id, new AppError("storage_full", "Can't write the model: the disk is full"));
  held.release(defect.id, new TypeError("undefined is not a secret"));
  await Promise.all([bench.until(jobs, known.id, "failed"), bench.until(jobs, defect.id, "failed")]);
  expect(jobs.get(known.id).error).toEqual({
    code: "storage_full",
    message: "Can't write the model: the disk is full",
  });
  expect(jobs.get(defect.id).error?.code).toBe("internal");
  expect(jobs.get(defect.id).error?.message).not.toContain("secret");
  expect(bench.reports).toEqual([
    expect.stringContaining(
      `"id":"${known.id}","code":"storage_full","error":"Can't write the model: the disk is full"`,
    ),
    expect.stringContaining("undefined is not a secret"),
  ]);
  await jobs.close();
});

test("a kind that throws before its first await fails its job and nothing else", { tags: ["L05"] }, async () => {
  await using bench = await jobBench();
  const broken: JobKind = {
    parallel: 1,
    resumable: false,
    run() {
      throw new Error("at once");
    },
  };
  const jobs = bench.open({ broken, whole: { parallel: 1, resumable: false, run: () => Promise.resolve() } });
  for (let n = 0; n < 2; n++) {
    const { id } = await jobs.start("broken", { title: "t", params: null });
    await bench.until(jobs, id, "failed");
    expect(jobs.get(id)).toMatchObject({ state: "failed", error: { code: "internal" } });
  }
  const { id } = await jobs.start("whole", { title: "t", params: null });
  await bench.until(jobs, id, "done");
  await jobs.close();
});

test("a running job is canceled after its cleanup, and only once", { tags: ["M02"] }, async () => {
  await using bench = await jobBench();
  const steps: string[] = [];
  const began = Promise.withResolvers<void>();
  const slow: JobKind = {
    parallel: 1,
    resumable: true,
    async run({ signal }) {
      began.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      await bench.db.write([{ sql: "DELETE FROM trash" }]); // it is slow
      steps.push("part file removed");
    },
  };
  const jobs = bench.open({ slow });
  bench.events.subscribe(({ id }) => steps.push(jobs.get(id).state));
  const { id } = await jobs.start("slow", { title: "t", params: null });
  await began.promise;
  const [first, second] = await Promise.all([jobs.cancel(id), jobs.cancel(id)]);
  expect([first.state, second.state]).toEqual(["cancelled", "cancelled"]);
  expect(steps).toEqual(["queued", "running", "part file removed", "cancelled"]);
  await expect(jobs.cancel(id)).rejects.toMatchObject({ code: "conflict" });
  await jobs.close();
  expect(bench.db.all(stateRows)).toEqual([{ id, state: "cancelled" }]);
});

test("a queued job is canceled without running, and the next one starts", async () => {
  await using bench = await jobBench();
  const held = heldKind();
  const jobs = bench.open({ download: held });
  const [a, b, c] = await Promise.all(["a", "b", "c"].map((title) => jobs.start("download", { title, params: title })));
  await held.untilBegun(1);
  expect((await jobs.cancel(b!.id)).state).toBe("cancelled");
  held.release(a!.id);
  await held.untilBegun(2);
  expect(held.begun.map(({ params }) => params)).toEqual(["a", "c"]);
  held.release(c!.id);
  await bench.until(jobs, c!.id, "done");
  expect(bench.db.all<{ state: string }>("SELECT state FROM job WHERE id = ?", b!.id)).toEqual([{
    state: "cancelled",
  }]);
  await jobs.close();
});

test(
  "a job can't be canceled while it verifies, and a canceled one doesn't verify",
  { tags: ["M02"] },
  async () => {
    await using bench = await jobBench();
    const reached = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const verifies: JobKind = {
      parallel: 2,
      resumable: true,
      async run({ params, signal, startVerifying: verifying }) {
        if (params === "late") await new Promise((resolve) => signal.addEventListener("abort", resolve));
        await verifying();
        reached.resolve();
        await goOn.promise;
      },
    };
    const jobs = bench.open({ verifies });
    const verified = await jobs.start("verifies", { title: "t", params: "early" });
    await reached.promise;
    await expect(jobs.cancel(verified.id)).rejects.toMatchObject({
      code: "conflict",
      message: `Job "${verified.id}" can't change from verifying to cancelled`,
    });
    goOn.resolve();
    await bench.until(jobs, verified.id, "done");
    const late = await jobs.start("verifies", { title: "t", params: "late" });
    await bench.until(jobs, late.id, "running");
    expect((await jobs.cancel(late.id)).state).toBe("cancelled");
    await jobs.close();
  },
);

test("starting the same job twice returns the first until it has ended", { tags: ["M02"] }, async () => {
  await using bench = await jobBench();
  const held = heldKind({ parallel: 3 });
  const jobs = bench.open({ download: held, other: heldKind() });
  const request = { title: "t", params: null, key: "repo/file" };
  const [first, second] = await Promise.all([jobs.start("download", request), jobs.start("download", request)]);
  expect(second.id).toBe(first.id);
  const others = [
    await jobs.start("download", { ...request, key: "repo/other" }),
    await jobs.start("download", { ...request, key: undefined }),
    await jobs.start("other", request),
  ];
  expect(new Set([first.id, ...others.map(({ id }) => id)]).size).toBe(4);
  await held.untilBegun(1);
  const [, again] = await Promise.all([jobs.cancel(first.id), jobs.start("download", request)]);
  expect(again.id).not.toBe(first.id);
  expect(jobs.get(first.id).state).toBe("cancelled");
  await jobs.close();
});

test("an ended job can be deleted, also after a restart; a running one can't", async () => {
  await using bench = await jobBench();
  const held = heldKind();
  const jobs = bench.open({ download: held });
  const { id } = await jobs.start("download", { title: "t", params: null });
  await held.untilBegun(1);
  await expect(jobs.forget(id)).rejects.toMatchObject({ code: "conflict" });
  held.release(id);
  await bench.until(jobs, id, "done");
  const told: string[] = [];
  bench.events.subscribe(({ kind, id }) => told.push(`${kind} ${id}`));
  await jobs.forget(id);
  expect(told).toEqual([`job ${id}`]);
  expect(jobs.list()).toEqual([]);
  await expect(jobs.forget(id)).rejects.toMatchObject({ code: "not_found" });
  await jobs.close();
  expect(bench.db.all(stateRows)).toEqual([]);
});

test("jobs are listed newest first, and an unknown id isn't found", async () => {
  await using bench = await jobBench();
  let nowMs = 1_000_000;
  const jobs = bench.open({ download: heldKind() }, () => nowMs++);
  for (const title of ["a", "b", "c"]) await jobs.start("download", { title, params: null });
  expect(jobs.list().map(({ title }) => title)).toEqual(["c", "b", "a"]);
  expect(() => jobs.get("absent")).toThrow('Job "absent" not found');
  await expect(jobs.cancel("absent")).rejects.toMatchObject({ code: "not_found" });
  await expect(jobs.start("unknown", { title: "t", params: null })).rejects.toMatchObject({ code: "internal" });
  await jobs.close();
});

test("a job that can't be stored isn't started", async () => {
  await using bench = await jobBench();
  const held = heldKind();
  const jobs = bench.open({ download: held });
  await bench.db.write([{ sql: "CREATE TRIGGER full BEFORE INSERT ON job BEGIN SELECT raise(ABORT, 'no'); END" }]);
  await expect(jobs.start("download", { title: "t", params: null })).rejects.toMatchObject({ code: "internal" });
  expect(jobs.list()).toEqual([]);
  await bench.db.write([{ sql: "DROP TRIGGER full" }]);
  await jobs.start("download", { title: "t", params: null });
  await held.untilBegun(1);
  await jobs.close();
});

test("keeps only finished jobs of the last week, and at most 200", async () => {
  await using bench = await jobBench();
  const quick: JobKind = { parallel: 10, resumable: false, run: () => Promise.resolve() };
  let nowMs = 1_000_000_000;
  const jobs = bench.open({ quick }, () => nowMs);
  for (let n = 0; n < 210; n++) {
    nowMs += 10; // a step of one job takes at least a millisecond of this clock
    const { id } = await jobs.start("quick", { title: String(n), params: null });
    await bench.until(jobs, id, "done");
  }
  expect(jobs.list()).toHaveLength(200);
  expect(jobs.list().at(-1)?.title).toBe("10");
  await jobs.close();
  nowMs += 8 * 24 * 60 * 60 * 1000;
  const after = bench.open({}, () => nowMs);
  expect(after.list()).toEqual([]);
  await after.close();
  expect(bench.db.all(stateRows)).toEqual([]);
});

test("what a kind keeps across failures is deleted when a job is canceled, running or waiting", async () => {
  await using bench = await jobBench();
  const discarded: unknown[] = [];
  const held = Object.assign(heldKind(), {
    discard: (params: unknown) => {
      discarded.push(params);
      return Promise.resolve();
    },
  });
  const jobs = bench.open({ download: held });
  const [ran, waited, failed] = await Promise.all(
    ["ran", "waited", "failed"].map((title) => jobs.start("download", { title, params: title })),
  );
  await held.untilBegun(1);
  expect((await jobs.cancel(waited!.id)).state).toBe("cancelled");
  expect((await jobs.cancel(ran!.id)).state).toBe("cancelled");
  expect(discarded).toEqual(["waited", "ran"]);
  await held.untilBegun(2);
  held.release(failed!.id, new Error("no"));
  await bench.until(jobs, failed!.id, "failed");
  expect(discarded).toHaveLength(2);
  await jobs.close();
});

test("a job can be canceled even if its cleanup fails", async () => {
  await using bench = await jobBench();
  const held = Object.assign(heldKind(), { discard: () => Promise.reject(new Error("it resists")) });
  const jobs = bench.open({ download: held });
  const { id } = await jobs.start("download", { title: "t", params: null });
  await held.untilBegun(1);
  expect((await jobs.cancel(id)).state).toBe("cancelled");
  expect(bench.reports).toEqual([`"Can't clean up after a job" {"kind":"download","id":"${id}","error":"it resists"}`]);
  await jobs.close();
});

test("the detail of a job can be set before it runs", async () => {
  await using bench = await jobBench();
  const held = heldKind();
  const jobs = bench.open({ download: held });
  const progress = { done: 0, total: 9, unit: "bytes" };
  const job = await jobs.start("download", { title: "t", params: null, progress, detail: { files: 2 } });
  expect(job).toMatchObject({ progress, detail: { files: 2 } });
  await jobs.close();
});
