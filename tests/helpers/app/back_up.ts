import { expect } from "vitest";
import type { TestApp } from "./test_app.ts";

/** Makes a backup, after the one that the server makes by itself soon after its start. */
export async function backUp(app: TestApp): Promise<void> {
  const states = () => app.services.jobs.list().map(({ state }) => state);
  await expect.poll(() => states().length > 0 && states().every((state) => state === "done")).toBe(true);
  const { id } = await (await app.post("/api/data/backups")).json();
  expect(await app.services.jobs.ended(id)).toMatchObject({ state: "done" });
}
