import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { wavFile } from "../../helpers/fakes/fake_speech.ts";
import { plainPng } from "../../helpers/files/cards.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => void (app = await openTestApp()));
afterEach(() => app[Symbol.asyncDispose]());

interface Resource {
  path: string;
  /** Body of the write that creates or replaces it; `name` makes two bodies differ. */
  body(name: string): Record<string, unknown> | Uint8Array<ArrayBuffer>;
  /** Path of the write if it isn't that of the resource. */
  putPath?: string;
}

const workflow = (name: string) => ({ "1": { class_type: "KSampler", inputs: { name } } });
const RESOURCES: Resource[] = [
  { path: "/api/conversations/new", body: (title) => ({ title, messages: [] }) },
  {
    path: "/api/characters/new",
    body: (name) => ({ spec: "chara_card_v2", spec_version: "2.0", data: { name, description: "" } }),
  },
  { path: "/api/personas/new", body: (name) => ({ name }) },
  { path: "/api/lorebooks/new", body: (name) => ({ name, entries: [] }) },
  { path: "/api/presets/new", body: (name) => ({ name }) },
  { path: "/api/image/workflows/new", body: workflow },
  { path: "/api/attachments/new.png", body: (name) => plainPng(4 + name.length, 4) },
  {
    path: "/api/connections/new",
    putPath: "/api/connections",
    body: (name) => ({ id: "new", kind: "openai", base_url: "http://127.0.0.1:9", name }),
  },
];

function put({ path, putPath = path, body }: Resource, name: string, headers: Record<string, string>) {
  const content = body(name);
  const isBytes = content instanceof Uint8Array;
  return app.request("PUT", putPath, content, {
    headers: { ...headers, ...(isBytes && { "Content-Type": "image/png" }) },
  });
}

describe.each(RESOURCES)("a write of $path", (resource) => {
  test("with If-Match: * gets 412 if nothing is stored, and stores nothing", async () => {
    const refused = await put(resource, "a", { "If-Match": "*" });
    expect([refused.status, (await refused.json()).error.code]).toEqual([412, "revision_mismatch"]);
    expect((await put(resource, "a", {})).status).toBe(201);
    expect((await put(resource, "ab", { "If-Match": "*" })).status).toBe(200);
  });

  test("If-None-Match: * creates and never overwrites, even concurrently", async () => {
    const answers = await Promise.all(
      ["a", "ab", "abc"].map((name) => put(resource, name, { "If-None-Match": "*" })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 412, 412]);
    expect((await put(resource, "abcd", { "If-None-Match": "*" })).status).toBe(412);
  });

  test("accepts lists of tags, compared strongly by If-Match and weakly by If-None-Match", async () => {
    const tag = (await put(resource, "a", {})).headers.get("etag")!;
    expect(tag).toMatch(/^"[^"]+"$/);
    for (const ifMatch of [`W/${tag}`, '"x", "y"', `"x",W/${tag}`, '""', ","]) {
      expect([ifMatch, (await put(resource, "ab", { "If-Match": ifMatch })).status]).toEqual([ifMatch, 412]);
    }
    for (const ifNoneMatch of [tag, `W/${tag}`, `"x", W/${tag}`]) {
      expect([ifNoneMatch, (await put(resource, "ab", { "If-None-Match": ifNoneMatch })).status])
        .toEqual([ifNoneMatch, 412]);
    }
    const second = await put(resource, "ab", { "If-Match": `"x", W/"y" , ${tag}` });
    expect(second.status).toBe(200);
    expect((await put(resource, "abc", { "If-None-Match": `"x", ${tag}` })).status).toBe(200);
  });
});

describe.each([
  ...RESOURCES.filter(({ putPath }) => putPath === undefined),
  { path: "/api/settings" },
  { path: "/api/tts/config" },
])("a read of $path", (resource) => {
  beforeEach(async () => {
    if ("body" in resource) await put(resource, "a", {});
  });

  test.each(["GET", "HEAD"])("%s gets 304 with If-None-Match and 412 with If-Match", async (method) => {
    const { path } = resource;
    const tag = (await app.get(path)).headers.get("etag")!;
    const ask = async (headers: Record<string, string>) => {
      const answer = await app.request(method, path, undefined, { headers });
      await answer.body?.cancel();
      return answer.status;
    };
    for (const none of [tag, `W/${tag}`, `"x", ${tag}`, "*"]) {
      expect([none, await ask({ "If-None-Match": none })]).toEqual([none, 304]);
    }
    const unchanged = await app.request(method, path, undefined, { headers: { "If-None-Match": tag } });
    expect([unchanged.headers.get("etag"), unchanged.headers.get("cache-control"), await unchanged.text()])
      .toEqual([tag, "no-store", ""]);
    expect(await ask({ "If-None-Match": '"x", W/"y"' })).toBe(200);
    expect([await ask({ "If-Match": '"x"' }), await ask({ "If-Match": `W/${tag}` })]).toEqual([412, 412]);
    expect([await ask({ "If-Match": `"x", ${tag}` }), await ask({ "If-Match": "*" })]).toEqual([200, 200]);
  });
});

test("HEAD has the headers of GET on every finite read of the API", async () => {
  for (const resource of RESOURCES) await put(resource, "a", {});
  const form = new FormData();
  form.append("audio", new Blob([wavFile(1)]), "voice.wav");
  form.append("name", "Ann");
  const voice = await (await app.post("/api/voices", form)).json();
  await app.request("PUT", "/api/characters/new/avatar", plainPng(8, 8), { headers: { "Content-Type": "image/png" } });
  const paths = [
    ...RESOURCES.filter(({ putPath }) => putPath === undefined).map(({ path }) => path),
    ...["/api/settings", "/api/tts/config", "/api/conversations", "/api/characters", "/api/jobs", "/api/trash"],
    ...["/api/voices", `/api/voices/${voice.id}`, `/api/voices/${voice.id}/audio`, "/api/characters/new/avatar"],
    ...[
      "/api/characters/new/export",
      "/api/conversations/new/export?format=json",
      "/api/auth/status",
      "/api/setup/status",
    ],
    "/api/openapi.json",
  ];
  const names = ["content-type", "content-length", "etag", "content-disposition", "accept-ranges", "cache-control"];
  for (const path of paths) {
    const got = await app.get(path);
    const bytes = await got.bytes();
    const head = await app.request("HEAD", path);
    const facts = ({ headers }: Response) => names.map((name) => [name, headers.get(name)]);
    const expected = facts(got).map(([name, value]) =>
      // A streamed list has no Content-Length, but HEAD reports it.
      name === "content-length" ? [name, String(bytes.length)] : [name, value]
    );
    expect([path, head.status, ...facts(head)]).toEqual([path, got.status, ...expected]);
    expect((await head.bytes()).length).toBe(0);
  }
});

test.each(["/api/events", "/api/export"])("HEAD of %s, an endless stream, ends immediately", async (path) => {
  const head = await app.request("HEAD", path);
  expect([head.status, head.headers.get("content-length")]).toEqual([200, null]);
});

test("ranges, If-Range and a range beyond the end", async () => {
  const form = new FormData();
  form.append("audio", new Blob([wavFile(1)]), "voice.wav");
  form.append("name", "Ann");
  const { id } = await (await app.post("/api/voices", form)).json();
  const path = `/api/voices/${id}/audio`;
  const whole = await app.get(path);
  const bytes = await whole.bytes();
  const tag = whole.headers.get("etag")!;
  const size = bytes.length;
  const ask = (headers: Record<string, string>) => app.get(path, { headers });
  for (
    const [range, start, end] of [["bytes=0-9", 0, 10], ["bytes=10-", 10, size], ["bytes=-10", size - 10, size], [
      `bytes=0-${size * 2}`,
      0,
      size,
    ], [`bytes=-${size * 2}`, 0, size]] as const
  ) {
    for (const ifRange of [undefined, tag]) {
      const part = await ask({ range, ...(ifRange && { "if-range": ifRange }) });
      expect([range, part.status, part.headers.get("content-range"), part.headers.get("etag")])
        .toEqual([range, 206, `bytes ${start}-${end - 1}/${size}`, tag]);
      expect(await part.bytes()).toEqual(bytes.slice(start, end));
    }
  }
  for (const range of [`bytes=${size}-`, `bytes=${size}-${size + 9}`, "bytes=-0", "bytes=999999999-"]) {
    const refused = await ask({ range });
    expect([range, refused.status, refused.headers.get("content-range")]).toEqual([range, 416, `bytes */${size}`]);
    expect((await refused.json()).error.code).toBe("range_not_satisfiable");
  }
  for (const range of ["bytes=9-1", "bytes=0-1,5-6", "lines=0-1", "bytes=-", "bytes=a-b"]) {
    const answer = await ask({ range });
    expect([range, answer.status, (await answer.bytes()).length]).toEqual([range, 200, size]);
  }
  for (const ifRange of ['"other"', `W/${tag}`, "Mon, 01 Jan 2029 00:00:00 GMT"]) {
    for (const range of ["bytes=0-9", `bytes=${size}-`]) {
      const answer = await ask({ range, "if-range": ifRange });
      expect([ifRange, range, answer.status, (await answer.bytes()).length]).toEqual([ifRange, range, 200, size]);
    }
  }
});
