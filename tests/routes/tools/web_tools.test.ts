import { expect, test } from "vitest";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { openFakeSearxng } from "../../helpers/fakes/fake_searxng.ts";
import { filesWithText } from "../../helpers/files/storage_folder.ts";

const WEB = "/api/tools/web";

test("is off until an address is set, and keeps it sealed over a restart", async () => {
  await using app = await openTestApp();
  const off = await (await app.get(WEB)).json();
  expect(off).toMatchObject({ search_url: null, search: false, read_page: false });
  expect(off.tools.map(({ name, permission, enabled }: Record<string, unknown>) => [name, permission, enabled]))
    .toEqual([["web_search", "ask", false], ["read_page", "ask", false]]);
  const put = await app.put(WEB, { search_url: " searx.lan:8080/sub/search?q=tea&format=json " });
  const on = { search_url: "http://searx.lan:8080/sub", search: true, read_page: true };
  expect(await put.json()).toMatchObject(on);
  await app.put(WEB, { read_page: false });
  await app.restart();
  expect(await (await app.get(WEB)).json()).toMatchObject({ ...on, read_page: false });
  expect(await filesWithText(app.dataDir, "searx.lan")).toEqual([]);
  expect(await (await app.put(WEB, { search_url: null })).json())
    .toMatchObject({ search_url: null, search: false, read_page: false });
});

test("refuses a change of an older version", async () => {
  await using app = await openTestApp();
  const tag = (await app.put(WEB, { read_page: true })).headers.get("etag")!;
  await app.put(WEB, { read_page: false });
  const late = await app.put(WEB, { read_page: true }, { headers: { "if-match": tag } });
  expect(late.status).toBe(412);
  expect(await (await app.get(WEB)).json()).toMatchObject({ read_page: false });
});

test.each([
  [{ search_url: "ftp://searx.lan" }, 400, "invalid_request"],
  [{ search_url: "http://user:secret@searx.lan" }, 400, "invalid_request"],
  [{ search_url: "http://169.254.169.254/" }, 403, "address_not_allowed"],
  [{ search: "yes" }, 400, "invalid_request"],
])("refuses %j", async (body, status, code) => {
  await using app = await openTestApp();
  for (const [method, path] of [["PUT", WEB], ["POST", `${WEB}/test`]] as const) {
    if (method === "POST" && "search" in body) continue;
    const response = await app.request(method, path, body);
    expect(response.status).toBe(status);
    const text = await response.text();
    expect(JSON.parse(text).error.code).toBe(code);
    expect(text).not.toContain("secret");
  }
});

test("tests an address without saving it", async () => {
  await using searxng = openFakeSearxng();
  await using app = await openTestApp();
  const run = async (body: Record<string, unknown>) => await (await app.post(`${WEB}/test`, body)).json();
  expect(await run({ search_url: searxng.origin })).toMatchObject({ working: true, results: 3 });
  searxng.switches.formats = ["html"];
  expect(await run({ search_url: searxng.origin }))
    .toMatchObject({ working: false, results: 0, error: expect.stringContaining("search.formats") });
  Object.assign(searxng.switches, { formats: ["json"], pages: [], unresponsiveEngines: [["bing", "timeout"]] });
  expect(await run({ search_url: searxng.origin }))
    .toMatchObject({ working: false, error: expect.stringContaining("bing (timeout)") });
  expect(await run({ search_url: "http://127.0.0.1:9" })).toMatchObject({ working: false });
  expect(await (await app.get(WEB)).json()).toMatchObject({ search_url: null });
  expect((await app.post(`${WEB}/test`, {})).status).toBe(400);
});

test("sets the permission of a tool", async () => {
  await using app = await openTestApp();
  const response = await app.patch(`${WEB}/tools/read_page`, { permission: "allow" });
  expect(await response.json()).toMatchObject({ name: "read_page", permission: "allow", enabled: false });
  await app.restart();
  const { tools } = await (await app.get(WEB)).json();
  expect(tools.map(({ permission }: { permission: string }) => permission)).toEqual(["ask", "allow"]);
  expect((await app.patch(`${WEB}/tools/shell`, { permission: "allow" })).status).toBe(404);
  expect((await app.patch(`${WEB}/tools/read_page`, { permission: "chat" })).status).toBe(400);
});
