import { expect, test } from "vitest";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

/** Values by `name{labels}`. @throws if a line isn't in the text format. */
function parse(text: string): Map<string, number> {
  expect(text.endsWith("\n")).toBe(true);
  const types = new Map<string, string>();
  const values = new Map<string, number>();
  for (const line of text.slice(0, -1).split("\n")) {
    const type = /^# TYPE (\w+) (counter|gauge|histogram)$/.exec(line);
    if (type !== null) {
      expect(types.has(type[1]!), `${type[1]} has one type`).toBe(false);
      types.set(type[1]!, type[2]!);
      continue;
    }
    if (/^# HELP \w+ \S/.test(line)) continue;
    const sample = /^([a-z_]+?(_bucket|_sum|_count)?)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+\})? (-?[\d.e+-]+)$/.exec(
      line,
    );
    if (sample === null) throw new Error(`not in the format: ${line}`);
    const [, name = "", ending = "", labels = "", value] = sample;
    const family = types.get(name) === undefined ? name.slice(0, name.length - ending.length) : name;
    expect(types.has(family), `the type of ${name} comes first`).toBe(true);
    expect(values.has(name + labels), `${name}${labels} is there once`).toBe(false);
    values.set(name + labels, Number(value));
  }
  return values;
}

async function scrape(app: TestApp, init: RequestInit = {}): Promise<Map<string, number>> {
  const answer = await app.get("/metrics", init);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  return parse(await answer.text());
}

test("metrics are off by default", async () => {
  await using app = await openTestApp();
  const answer = await app.get("/metrics");
  expect([answer.status, (await answer.json()).error.code]).toEqual([404, "not_found"]);
});

test("requests, streams, tokens, tasks, delays and sizes are counted, without ids", async () => {
  await using llm = await openFakeLlm();
  await using app = await openTestApp({ config: { metrics: true } });
  expect((await scrape(app)).get('parlor_tokens_total{kind="prompt"}')).toBe(0);
  await app.put("/api/connections", { id: "d", kind: "openai", base_url: llm.url, model: "fake-model" });
  await app.post("/api/connections/d/activate");
  await app.get("/api/conversations/secret-id");
  await (await app.post("/api/chat", { messages: [{ role: "user", content: "Hello" }], stream: true })).text();
  app.services.jobs.register("test", { parallel: 1, resumable: false, run: () => Promise.resolve() });
  const { id } = await app.services.jobs.start("test", { title: "A secret title", params: {} });
  await app.services.jobs.ended(id);

  const text = await (await app.get("/metrics")).text();
  expect(text).not.toMatch(/secret/);
  const values = parse(text);
  const missing = 'method="GET",route="/api/conversations/{id}"';
  const area = 'area="/api/conversations"';
  expect(values.get(`parlor_http_requests_total{${missing},status="404"}`)).toBe(1);
  expect(values.get(`parlor_http_request_duration_seconds_count{${area}}`)).toBeGreaterThan(0);
  expect(values.get(`parlor_http_request_duration_seconds_bucket{${area},le="+Inf"}`)).toBeGreaterThan(0);
  expect(values.get("parlor_streams_active")).toBe(0);
  expect(values.get('parlor_tokens_total{kind="completion"}')).toBeGreaterThan(0);
  expect(values.get('parlor_jobs{kind="test",state="done"}')).toBe(1);
  expect(values.get("parlor_database_bytes")).toBeGreaterThan(4096);
  await expect.poll(async () => (await scrape(app)).get('parlor_data_bytes{kind="chats"}')).toBeGreaterThan(4096);
  await expect.poll(async () => (await scrape(app)).get("parlor_event_loop_delay_seconds_count")).toBeGreaterThan(0);
}, 180_000);

test("a scrape doesn't walk the data folder", async () => {
  await using app = await openTestApp({ config: { metrics: true } });
  const kind = 'parlor_data_bytes{kind="rest"}';
  await expect.poll(async () => (await scrape(app)).get(kind)).toBeGreaterThan(0);
  const before = (await scrape(app)).get(kind);
  await Deno.writeFile(`${app.dataDir}/large`, new Uint8Array(1_000_000));
  for (let n = 0; n < 3; n++) expect((await scrape(app)).get(kind)).toBe(before);
});

test("other machines need a token, also without a passkey or with sign-in off", async () => {
  const config = { metrics: true, allowedHosts: ["localhost"] };
  for (const requireAuth of [true, false]) {
    await using app = await openTestApp({
      config: { ...config, requireAuth },
      connection: { peerAddress: "192.168.1.7" },
    });
    expect((await app.get("/api/settings")).status, "grace opens the API").toBe(200);
    const answer = await app.get("/metrics");
    expect([answer.status, (await answer.json()).error.code]).toEqual([401, "unauthenticated"]);
    const { token } = await app.services.auth.mintToken("Prometheus");
    await scrape(app, { headers: { Authorization: `Bearer ${token}` } });
  }
  await using app = await openTestApp({ config, connection: { peerAddress: "192.168.1.7" } });
  const wrong = await app.get("/metrics", { headers: { Authorization: "Bearer wrong" } });
  const limited = await app.services.auth.mintToken("SillyTavern", "openai");
  const other = await app.get("/metrics", { headers: { Authorization: `Bearer ${limited.token}` } });
  expect([wrong.status, other.status]).toEqual([401, 403]);
});

test("a page of another site can't read the metrics of this machine", async () => {
  await using app = await openTestApp({ config: { metrics: true } });
  const headers = { "Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example" };
  expect((await app.get("/metrics", { headers })).status).not.toBe(200);
});
