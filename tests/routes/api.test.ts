import { expect, test } from "vitest";
import { fetchAs } from "../helpers/network/fetch_as.ts";
import { openTestApp } from "../helpers/app/test_app.ts";

test("every route in the API document lists its method in the Allow header of a 405", async () => {
  await using app = await openTestApp();
  const { definitions } = (await app.app.loadApi()).openAPIRegistry;
  const routes = definitions.flatMap((definition) => definition.type === "route" ? [definition.route] : []);
  expect(routes.length).toBeGreaterThan(100);
  for (const { method, path } of routes) {
    if (!path.startsWith("/api/")) continue;
    const answer = await fetchAs(app, { method: "PURGE", path: path.replace(/\{[^}]+\}/g, "x1") });
    expect([path, answer.status]).toEqual([path, 405]);
    expect(String(answer.headers.get("allow")).split(", "), path).toContain(method.toUpperCase());
  }
});

test("a service that fails to open fails only its own requests, and the next request tries again", async () => {
  await using app = await openTestApp();
  await app.restart(); // the first start opens the service at once
  await Deno.remove(`${app.dataDir}/characters`, { recursive: true });
  await Deno.writeTextFile(`${app.dataDir}/characters`, "no folder");
  const failed = await app.get("/api/characters");
  expect([failed.status, (await failed.json()).error]).toMatchObject([500, { code: "internal" }]);
  const stranger = await fetchAs(app, { path: "/api/characters", host: "evil.test" });
  expect(stranger.status).toBe(403);
  await Deno.remove(`${app.dataDir}/characters`);
  // Another caller may already be opening the service.
  await expect.poll(async () => (await app.get("/api/characters")).status).toBe(200);
});
