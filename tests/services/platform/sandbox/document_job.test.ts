/**
 * Large files and bodies of lorebooks and presets: neither they nor what is stored of them is parsed or written at once.
 * @slow Each file and body has many megabytes.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseLorebookFile } from "../../../../services/lorebooks/lorebook_file.ts";
import { parsePresetFile } from "../../../../services/presets/sillytavern.ts";
import { listLongJson } from "../../../helpers/app/long_json.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";

const TEXT = "The fox is red. ".repeat(12);
const entries = Object.fromEntries(
  Array.from({ length: 3_000 }, (_, n) => [n, { uid: n, key: [`fox ${n}`], content: TEXT, order: n, odd: { n } }]),
);
const prompts = Array.from(
  { length: 1_500 },
  (_, n) => ({ identifier: `p${n}`, role: "system", content: TEXT, own: n }),
);
const FILES = {
  lorebooks: { name: "Woods", scan_depth: 4, entries },
  presets: { name: "Woods", temperature: 0.5, prompts, prompt_order: [], wi_format: "{0}", extra_body: { a: 1 } },
};
const encode = (json: unknown) => new TextEncoder().encode(JSON.stringify(json));
const KINDS = ["lorebooks", "presets"] as const;

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

async function upload(kind: string, file: Uint8Array<ArrayBuffer>): Promise<{ status: number; text: string }> {
  const form = new FormData();
  form.append("file", new Blob([file]), "file.json");
  const response = await app.post(`/api/${kind}/import`, form);
  return { status: response.status, text: await response.text() };
}

test.each(KINDS)(
  "a large file of %s is imported, stored and sent without parsing or writing it at once",
  async (kind) => {
    const file = encode(FILES[kind]);
    const texts: string[] = [];
    const read = async () => {
      const id = /"id":"([^"]+)"/.exec(texts[0]!)![1]!;
      texts.push(await (await app.get(`/api/${kind}/${id}`)).text());
    };
    const long = await listLongJson(async () => {
      const { status, text } = await upload(kind, file);
      expect([status, text.slice(0, 200)]).toEqual([201, expect.anything()]);
      texts.push(text);
      await read();
    });
    await app.restart();
    long.push(...await listLongJson(read));
    let exported = "";
    const id = /"id":"([^"]+)"/.exec(texts[0]!)![1]!;
    long.push(
      ...await listLongJson(async () => {
        exported = await (await app.get(`/api/${kind}/${id}/export`)).text();
      }),
    );
    expect(exported).toBe(JSON.stringify(JSON.parse(exported), null, 4));
    expect(long).toEqual([]);
    const expected = kind === "lorebooks" ? { book: parseLorebookFile(file).book } : parsePresetFile(file).preset;
    for (const text of texts) expect(JSON.parse(text)).toMatchObject({ name: "Woods", ...expected });
    expect(new Set(texts).size).toBe(1);
  },
);

const many = Object.fromEntries(Array.from({ length: 21_000 }, (_, n) => [`k${n}`, n]));

test.each<[(typeof KINDS)[number], unknown]>([
  ["lorebooks", { entries: [{ keys: ["fox"], content: "Red.", extensions: many }] }],
  ["lorebooks", { entries: [], extensions: { own: many } }],
  ["presets", { temperature: 1, prompts: [{ identifier: "main", own: many }] }],
  ["presets", { temperature: 1, own: many }],
])("a file of %s with more fields in one part than any has is refused, without parsing it here", async (kind, json) => {
  const file = encode(json);
  let refused = "";
  const long = await listLongJson(async () => {
    const { status, text } = await upload(kind, file);
    expect(status).toBe(422);
    refused = text;
  });
  expect(long).toEqual([]);
  expect(JSON.parse(refused).error.message).toContain("one of its parts has too many fields");
});

test.each(KINDS)("a large file that has no %s is refused like a small one", async (kind) => {
  const spaces = new Uint8Array(70_000).fill(0x20);
  const message = async (...parts: BlobPart[]) => {
    const { status, text } = await upload(kind, new Uint8Array(await new Blob(parts).arrayBuffer()));
    return [status, JSON.parse(text).error.message];
  };
  for (const file of ["{", "[]", '{"own":1}', '{"entries":[],"prompts":[],"deep":1e999}', Uint8Array.of(0xff)]) {
    const short = await message(file);
    expect([file, short]).toEqual([file, [422, expect.any(String)]]);
    expect([file, await message(file, spaces)]).toEqual([file, short]);
  }
});

const book = parseLorebookFile(encode(FILES.lorebooks)).book;
const { preset } = parsePresetFile(encode(FILES.presets));
const BODIES = {
  lorebooks: { name: "Woods", scope: "chat", enabled: false, character_ids: ["fox"], book: FILES.lorebooks },
  presets: { name: "Woods", models: ["mist*"], ...preset, unknown: 1 },
};
const json = { headers: { "content-type": "application/json" } };

test.each(KINDS)("a large body of a PUT of %s is saved without parsing or writing it at once", async (kind) => {
  const text = JSON.stringify(BODIES[kind]);
  const texts: string[] = [];
  const long = await listLongJson(async () => {
    for (const status of [201, 200]) {
      const response = await app.request("PUT", `/api/${kind}/woods`, text, json);
      expect(response.status).toBe(status);
      texts.push(await response.text());
    }
    texts.push(await (await app.get(`/api/${kind}/woods`)).text());
  });
  expect(long).toEqual([]);
  const { unknown: _, ...saved } = { ...BODIES[kind], ...kind === "lorebooks" && { book }, unknown: 1 };
  for (const text of texts) expect(JSON.parse(text)).toMatchObject(saved);
});

test("a large draft of a lorebook is tested without parsing it at once", async () => {
  const text = JSON.stringify({ book: FILES.lorebooks, text: "Look, fox 7." });
  const long = await listLongJson(async () => {
    const response = await app.request("POST", "/api/lorebooks/test", text, json);
    expect(response.status).toBe(200);
    expect((await response.json()).entries).toMatchObject([{ reason: { kind: "key", key: "fox 7" } }]);
  });
  expect(long).toEqual([]);
});

const nest = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const small = { entries: [{ keys: ["fox"], content: "Red." }] };
const ids = (count: number) => Array.from({ length: count }, (_, n) => `c${n}`);

type Body = string | object | Uint8Array<ArrayBuffer>;
const REQUESTS: Record<string, [body: Body, status: number][]> = {
  "PUT /api/lorebooks/fox": [
    [{ name: "Fox", book: { ...small, name: "Other" } }, 200],
    [{ enabled: null, scope: null, character_ids: null, persona_ids: ["p1"], book: small }, 200],
    [{ ...small, name: "Fox" }, 200],
    [{ spec: "lorebook_v3", data: { name: "Fox", ...small } }, 200],
    [{ name: "x".repeat(201), book: small }, 400],
    [{ scope: "nobody", book: {} }, 400],
    [{ character_ids: ids(1_001), book: small }, 400],
    [{ character_ids: [["c1"], "a b", { id: 1 }, "x".repeat(1_000)], book: small }, 400],
    [{ book: null }, 400],
    [{ book: [] }, 400],
    [{ name: "Fox" }, 422],
    [{ book: { name: "Fox" } }, 422],
    [`{"book":{"entries":[{"keys":["fox"],"order":1e999}]}}`, 422],
    [`{"book":{"entries":${nest(101)}}}`, 422],
  ],
  "PUT /api/presets/fox": [
    [{ name: "Fox", models: ["mist*"], sampler: { temperature: 1 }, odd: 1 }, 200],
    [{ prompts: [{ identifier: "main", content: "Red.", own: { a: [1] } }], prompt_order: null, models: null }, 200],
    [{ prompt_order: [{ order: [{ identifier: "main", enabled: true, own: 1 }] }], rest: { a: 1 } }, 200],
    [{ extra_body: { own: 1 } }, 200],
    [{ extra_body: { model: "x" } }, 400],
    [{ sampler: { temperature: "hot", "Top P": 1 } }, 400],
    [{ prompts: Array.from({ length: 2_001 }, () => ({ identifier: "main" })) }, 400],
    [{ prompts: [{ name: "none" }, 1] }, 400],
    [{ rest: [] }, 400],
    [`{"rest":{"deep":${nest(101)}}}`, 422],
  ],
  "POST /api/lorebooks/test": [
    [{ book: small, text: "A fox." }, 200],
    [{ lorebook_id: "fox", text: "A fox." }, 200],
    [{ lorebook_id: "none", text: "A fox." }, 404],
    [{ text: "A fox." }, 400],
    [{ book: small }, 400],
    [{ book: small, text: "x".repeat(200_001) }, 400],
    [{ book: small, text: "A fox.", budget_tokens: -1 }, 400],
    [{ book: { entries: 1 }, text: "A fox." }, 422],
  ],
};
const BROKEN: [body: Body, status: number][] = [
  ["[1]", 400],
  ["null", 400],
  [`{"name":"Fox"`, 400],
  [nest(501), 400],
  [Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), 400],
];

test.each(Object.entries(REQUESTS))("a long body of %s is answered like a short one", async (request, bodies) => {
  const spaces = new Uint8Array(70_000).fill(0x20);
  const [method, path] = request.split(" ") as [string, string];
  await app.put("/api/lorebooks/fox", { book: small });
  await app.put("/api/presets/fox", {});
  const send = async (...parts: BlobPart[]) => {
    const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
    const response = await app.request(method, path, bytes, json);
    const { updated_at: _, error, ...rest } = await response.json();
    return [response.status, { ...rest, ...error, request_id: "" }];
  };
  for (const [body, status] of [...bodies, ...BROKEN]) {
    const part = typeof body === "string" || body instanceof Uint8Array ? body as BlobPart : JSON.stringify(body);
    const short = await send(part);
    expect([body, short]).toEqual([body, [status, expect.anything()]]);
    expect([body, await send(part, spaces)]).toEqual([body, short]);
  }
});

test.each<[(typeof KINDS)[number], unknown]>([
  ["lorebooks", { book: { entries: [{ keys: ["fox"], content: "Red.", extensions: many }] } }],
  ["presets", { prompts: [{ identifier: "main", own: many }] }],
  ["presets", { prompts: Array.from({ length: 30 }, () => ({ identifier: "main", own: Array(40_000).fill(1) })) }],
])(
  "a body of %s with more fields than can be checked quickly is refused, without parsing it here",
  async (kind, body) => {
    const text = JSON.stringify(body);
    const long = await listLongJson(async () => {
      const response = await app.request("PUT", `/api/${kind}/fox`, text, json);
      expect(response.status).toBe(422);
      expect((await response.json()).error.message).toContain("too many fields");
    });
    expect(long).toEqual([]);
  },
);

test.each(KINDS)("a body of %s that is too large to store is refused, without parsing it here", async (kind) => {
  const length = kind === "lorebooks" ? 3_800 : 1_900;
  const items = Array.from({ length }, (_, n) => ({ identifier: `p${n}`, content: "x".repeat(3_000) }));
  const text = JSON.stringify(kind === "lorebooks" ? { book: { entries: items } } : { prompts: items });
  const long = await listLongJson(async () => {
    expect((await app.request("PUT", `/api/${kind}/fox`, text, json)).status).toBe(413);
  });
  expect(long).toEqual([]);
});

test.each(KINDS)("a long body of %s is saved only over the version that its client knows", async (kind) => {
  const text = JSON.stringify(BODIES[kind]);
  const send = (etag: string) =>
    app.request("PUT", `/api/${kind}/fox`, text, { headers: { ...json.headers, "if-match": etag } });
  await app.put(`/api/${kind}/fox`, kind === "lorebooks" ? { book: small } : {});
  const statuses = [];
  for (const etag of ['"2"', '"1"', '"1"']) statuses.push((await send(etag)).status);
  expect(statuses).toEqual([412, 200, 412]);
});
