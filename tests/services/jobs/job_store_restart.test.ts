import { expect, test } from "vitest";
import type { JobKind } from "../../../services/jobs/job_store.ts";
import { filesWithText } from "../../helpers/files/storage_folder.ts";
import { heldKind, type JobBench, jobBench } from "../../helpers/processes/storage_jobs.ts";

/** Stores jobs as a killed process leaves them: one running and one waiting. */
async function leaveBehind(bench: JobBench, state = "running"): Promise<{ ran: string; waited: string }> {
  const held = heldKind({ resumable: true });
  const jobs = bench.open({ download: held });
  const ran = await jobs.start("download", { title: "ran", params: { n: 1 } });
  const waited = await jobs.start("download", { title: "waited", params: { n: 2 } });
  await held.untilBegun(1);
  held.begun[0]!.progress({ done: 5, total: 9, unit: "files" });
  await jobs.close();
  if (state !== "running") {
    await bench.db.write([{ sql: "UPDATE job SET state = ? WHERE id = ?", params: [state, ran.id] }]);
  }
  return { ran: ran.id, waited: waited.id };
}

test(
  "closing aborts running jobs, waits for them, and leaves resumable jobs to the next start",
  { tags: ["M05"] },
  async () => {
    await using bench = await jobBench();
    const { ran, waited } = await leaveBehind(bench);
    expect(bench.db.all("SELECT id, state FROM job WHERE state = 'running'")).toEqual([{ id: ran, state: "running" }]);
    expect(bench.db.all("SELECT id, state FROM job WHERE state = 'queued'")).toEqual([{ id: waited, state: "queued" }]);
  },
);

test.each(["running", "verifying"])(
  "a resumable job left %s resumes automatically, before those that were waiting",
  { tags: ["M05"] },
  async (state) => {
    await using bench = await jobBench();
    const { ran, waited } = await leaveBehind(bench, state);
    const held = heldKind({ resumable: true });
    const jobs = bench.open({ download: held });
    await held.untilBegun(1);
    expect(held.begun[0]).toMatchObject({ id: ran, params: { n: 1 }, isResumed: true });
    held.release(ran);
    await held.untilBegun(2);
    expect(held.begun[1]).toMatchObject({ id: waited, params: { n: 2 }, isResumed: false });
    held.release(waited);
    await bench.until(jobs, waited, "done");
    expect(jobs.get(ran).state).toBe("done");
    await jobs.close();
  },
);

test.each(["running", "verifying"])(
  "a job left %s that can't be resumed fails, and a queued one runs",
  async (state) => {
    await using bench = await jobBench();
    const { ran, waited } = await leaveBehind(bench, state);
    const held = heldKind({ resumable: false });
    const jobs = bench.open({ download: held });
    expect(jobs.get(ran)).toMatchObject({ state: "failed", error: { code: "interrupted" } });
    await held.untilBegun(1);
    expect(held.begun[0]!.id).toBe(waited);
    await jobs.close();
    expect(bench.db.get("SELECT state FROM job WHERE id = ?", ran)).toEqual({ state: "failed" });
    expect(bench.open({}).get(waited)).toMatchObject({ state: "failed", error: { code: "interrupted" } });
  },
);

test("a job whose kind is no longer known stays in the list and can be canceled", async () => {
  await using bench = await jobBench();
  const { ran, waited } = await leaveBehind(bench);
  const jobs = bench.open({});
  expect(jobs.list()).toHaveLength(2);
  for (const id of [ran, waited]) expect((await jobs.cancel(id)).state).toBe("cancelled");
  await jobs.close();
});

test("no job starts while the runner is closing", async () => {
  await using bench = await jobBench();
  const held = heldKind();
  const jobs = bench.open({ download: held });
  const { id } = await jobs.start("download", { title: "t", params: null });
  await held.untilBegun(1);
  const closing = jobs.close();
  await expect(jobs.start("download", { title: "u", params: null })).rejects.toMatchObject({ code: "not_available" });
  await closing;
  expect(jobs.get(id)).toMatchObject({ state: "failed", error: { code: "interrupted" } });
});

test("closing waits for the cleanup of running jobs", async () => {
  await using bench = await jobBench();
  const steps: string[] = [];
  const began = Promise.withResolvers<void>();
  const slow: JobKind = {
    parallel: 1,
    resumable: true,
    async run({ signal }) {
      began.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      await bench.db.write([{ sql: "DELETE FROM trash" }]);
      steps.push("cleaned up");
    },
  };
  const jobs = bench.open({ slow });
  await jobs.start("slow", { title: "t", params: null });
  await began.promise;
  await jobs.close();
  steps.push("closed");
  expect(steps).toEqual(["cleaned up", "closed"]);
});

test(
  "titles, parameters, details and errors of jobs are encrypted, and the content of a row can be decrypted only in that row",
  {
    tags: ["K01", "K02"],
  },
  async () => {
    await using bench = await jobBench();
    const { ran, waited } = await leaveBehind(bench);
    const jobs = bench.open({
      download: {
        ...heldKind(),
        run: ({ detail }) => {
          detail({ note: "a detail in plain words" });
          return Promise.reject(new Error("words of an error"));
        },
      },
    });
    const { id } = await jobs.start("download", {
      title: "a title in plain words",
      params: { prompt: "a parameter in plain words" },
    });
    await bench.until(jobs, id, "failed");
    await jobs.close();
    for (const text of ["in plain words", "words of an error", "files"]) {
      expect(await filesWithText(bench.folder, text)).toEqual([]);
    }
    expect(await filesWithText(bench.folder, "download"), "the search must see what is plain").not.toEqual([]);

    await bench.db.write([{
      sql: "UPDATE job SET sealed = (SELECT sealed FROM job AS other WHERE other.id = ?) WHERE id = ?",
      params: [waited, ran],
    }]);
    const after = bench.open({});
    expect(after.get(ran)).toMatchObject({ title: "", error: { message: `Can't decrypt job "${ran}"` } });
    expect(after.get(id).title).toBe("a title in plain words");
  },
);

test("an unreadable job is marked in the list and fails at the next start", {
  tags: ["K03"],
}, async () => {
  await using bench = await jobBench();
  const { ran, waited } = await leaveBehind(bench);
  await bench.db.write([{ sql: "UPDATE job SET sealed = x'01'" }]);
  const held = heldKind({ resumable: true });
  const jobs = bench.open({ download: held });
  expect(jobs.list().map(({ title, state }) => ({ title, state }))).toEqual([
    { title: "", state: "failed" },
    { title: "", state: "failed" },
  ]);
  await jobs.close();
  expect(held.begun).toEqual([]);
  for (const id of [ran, waited]) {
    expect(bench.db.get("SELECT state, sealed FROM job WHERE id = ?", id)).toEqual({
      state: "failed",
      sealed: new Uint8Array([1]),
    });
  }
});
