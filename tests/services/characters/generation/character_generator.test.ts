import { expect, test } from "vitest";
import { type PortraitGenerator, Portraits } from "../../../../services/characters/generation/character_generator.ts";
import { createJobRunner } from "../../../../services/jobs/job_runner.ts";
import { plainPng, sillyTavernReads } from "../../../helpers/files/cards.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";

/** A second runner, because the app has a portrait kind already. */
async function portraitsOf(app: Awaited<ReturnType<typeof openTestApp>>, painter: PortraitGenerator) {
  const events = { listeners: [] as (() => void)[], publish: () => events.listeners.forEach((tell) => tell()) };
  const place = new Uint8Array();
  const jobs = createJobRunner({
    db: { all: () => [], write: () => Promise.resolve() },
    sealer: { sealNow: () => place, openNow: () => place },
    events,
    isExpired: () => false,
    log: () => {},
  });
  const portraits = new Portraits({ jobs, characters: (await app.services.characters()).characters, painter });
  const until = async (state: string) => {
    for (;;) {
      const told = new Promise<void>((resolve) => events.listeners.push(resolve));
      if ((await portraits.getStatus("fox")).state === state) return;
      await told;
    }
  };
  return { portraits, jobs, until };
}

test("a portrait goes from pending through running to done, and becomes the character's image without changing its card", async () => {
  await using app = await openTestApp({ config: { builtinAppInstalled: true } });
  await app.put("/api/characters/fox", { card: { name: "Fox", description: "red" } });
  const go = Promise.withResolvers<void>();
  const asked: unknown[] = [];
  const { portraits, jobs, until } = await portraitsOf(app, async ({ characterId, card, onProgress }) => {
    asked.push([characterId, card.data.description]);
    onProgress(0.5);
    await go.promise;
    return plainPng(20, 30);
  });
  expect(await portraits.getStatus("fox")).toEqual({ state: "none" });
  const job = await portraits.start("fox");
  expect((await portraits.start("fox")).id).toBe(job.id);
  await until("running");
  expect(await portraits.getStatus("fox")).toMatchObject({ state: "running", started_at: expect.any(String) });
  go.resolve();
  await until("done");
  expect(await portraits.getStatus("fox")).toMatchObject({
    state: "done",
    progress: 0.5,
    finished_at: expect.any(String),
  });
  expect(asked).toEqual([["fox", "red"]]);
  const picture = await (await app.get("/api/characters/fox/avatar")).bytes();
  expect(new DataView(picture.buffer).getUint32(16)).toBe(20);
  expect(sillyTavernReads(picture).data.name).toBe("Fox");
  await jobs.close();
});

test("a canceled portrait fails and changes nothing", async () => {
  await using app = await openTestApp({ config: { builtinAppInstalled: true } });
  await app.put("/api/characters/fox", { card: { name: "Fox", description: "red" } });
  const { portraits, jobs, until } = await portraitsOf(
    app,
    ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  const job = await portraits.start("fox");
  await until("running");
  await jobs.cancel(job.id);
  expect(await portraits.getStatus("fox")).toMatchObject({ state: "failed", error: { code: "interrupted" } });
  expect((await app.get("/api/characters/fox/avatar")).status).toBe(404);
  await jobs.close();
});
