import { expect } from "vitest";
import type { TestApp } from "./test_app.ts";

/** Makes a backup, after those that the server makes by itself. */
export async function backUp(app: TestApp): Promise<void> {
  await expect.poll(() => app.services.jobs.list().every(({ state }) => state === "done")).toBe(true);
  const { id } = await (await app.post("/api/data/backups")).json();
  expect(await app.services.jobs.ended(id)).toMatchObject({ state: "done" });
}
