import { expect, test } from "vitest";
import { AppError } from "../../services/errors.ts";
import type { JobContext } from "../../services/jobs/job_runner.ts";
import { openTestApp } from "../helpers/app/test_app.ts";

/** Resolves when a signal fires. */
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

test("a job is listed with its progress and can be canceled once", async () => {
  await using app = await openTestApp();
  const hasBegun = Promise.withResolvers<JobContext>();
  app.services.jobs.register("test", {
    parallel: 1,
    resumable: false,
    async run(context) {
      context.progress({ done: 1, total: 4, unit: "steps" });
      hasBegun.resolve(context);
      await aborted(context.signal);
      context.signal.throwIfAborted();
    },
  });
  const { id } = await app.services.jobs.start("test", { title: "Count to four", params: {} });
  await hasBegun.promise;
  const job = {
    id,
    kind: "test",
    title: "Count to four",
    state: "running",
    progress: { done: 1, total: 4, unit: "steps" },
  };
  expect(await (await app.get("/api/jobs")).json()).toMatchObject([job]);
  const one = await (await app.get(`/api/jobs/${id}`)).json();
  expect(one).toMatchObject(job);
  expect(one.created_at).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
  const cancelled = await app.post(`/api/jobs/${id}/cancel`);
  expect([cancelled.status, await cancelled.json()]).toMatchObject([200, { id, state: "cancelled" }]);
  const again = await app.post(`/api/jobs/${id}/cancel`);
  expect([again.status, (await again.json()).error.code]).toEqual([409, "conflict"]);
});

test("a failed job says why it failed", async () => {
  await using app = await openTestApp();
  const ended = Promise.withResolvers<void>();
  app.services.jobs.register("test", {
    parallel: 1,
    resumable: false,
    run: () => Promise.reject(new AppError("upstream_error", "The hub refused")),
  });
  const { id } = await app.services.jobs.start("test", { title: "Fetch", params: {} });
  app.services.events.subscribe(() => app.services.jobs.get(id).state === "failed" && ended.resolve());
  if (app.services.jobs.get(id).state !== "failed") await ended.promise;
  expect(await (await app.get(`/api/jobs/${id}`)).json())
    .toMatchObject({ state: "failed", error: { code: "upstream_error", message: "The hub refused" } });
});

test("an unknown job gets 404, and a word that isn't an ID gets 400", async () => {
  await using app = await openTestApp();
  expect((await app.get("/api/jobs/unknown")).status).toBe(404);
  expect((await app.post("/api/jobs/unknown/cancel")).status).toBe(404);
  expect((await app.get("/api/jobs/a.b")).status).toBe(400);
});

test("the list of jobs omits lists in details, and the job itself contains all of them", async () => {
  await using app = await openTestApp();
  const detail = {
    kind: "tavern",
    dry_run: true,
    upload_id: "u1",
    lines: [{ reason: "x".repeat(500) }],
    counts: { a: 1 },
  };
  app.services.jobs.register("test", {
    parallel: 1,
    resumable: false,
    run: (context) => Promise.resolve(context.detail(detail)),
  });
  const { id } = await app.services.jobs.start("test", { title: "Report", params: {} });
  await app.services.jobs.ended(id);
  const [listed] = await (await app.get("/api/jobs")).json();
  expect(listed).toMatchObject({ id, state: "done" });
  expect(listed.detail).toEqual({ kind: "tavern", dry_run: true, upload_id: "u1" });
  expect((await (await app.get(`/api/jobs/${id}`)).json()).detail).toEqual(detail);
});
