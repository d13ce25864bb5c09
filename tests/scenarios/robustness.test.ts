/** @slow Every JSON route gets hundreds of odd bodies. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isLong } from "../helpers/files/sample.ts";
import { startChildServer } from "../helpers/app/child_server.ts";
import { fetchAs } from "../helpers/network/fetch_as.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** The part of JSON Schema that the API document uses. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: Json[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  additionalProperties?: boolean | Schema;
}

interface Operation {
  requestBody?: { content: Record<string, { schema: Schema }> };
}

interface ApiDocument {
  paths: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, Schema> };
}

/** Values of every JSON type, and some that break careless code. */
const ODD_VALUES: Json[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  "",
  "x",
  "\u0000",
  "../../x",
  "\ud800",
  "\u202e".repeat(50),
  "9".repeat(400),
  [],
  [null],
  [[]],
  [{}],
  {},
  { id: null },
  { __proto__x: 1, constructor: 1, toString: null, length: -1 },
];

function resolve(schema: Schema, document: ApiDocument): Schema {
  if (schema.$ref !== undefined) {
    return resolve(document.components!.schemas![schema.$ref.split("/").at(-1)!]!, document);
  }
  const part = schema.anyOf?.[0] ?? schema.oneOf?.[0];
  if (part !== undefined) return resolve(part, document);
  if (schema.allOf === undefined) return schema;
  const parts = schema.allOf.map((each) => resolve(each, document));
  return {
    ...schema,
    ...Object.assign({}, ...parts),
    properties: Object.assign({}, ...parts.map((p) => p.properties)),
  };
}

/** A value with the types of the schema. */
function sample(schema: Schema, document: ApiDocument, depth = 0): Json {
  const { type, properties, items, enum: words } = resolve(schema, document);
  if (words !== undefined) return words[0]!;
  switch (Array.isArray(type) ? type[0] : type) {
    case "string":
      return "x1";
    case "integer":
    case "number":
      return 1;
    case "boolean":
      return true;
    case "array":
      return depth > 4 || items === undefined ? [] : [sample(items, document, depth + 1)];
    case "object":
      return Object.fromEntries(
        Object.entries(properties ?? {}).map((
          [name, part],
        ) => [name, depth > 4 ? null : sample(part, document, depth + 1)]),
      );
    default:
      return null;
  }
}

/** Replaces each part of a valid value by an unusual one, one at a time. */
function* spoiled(good: Json, odd: Json): Generator<Json> {
  yield odd;
  if (Array.isArray(good)) {
    for (const [i, part] of good.entries()) {
      for (const bad of spoiled(part, odd)) yield good.map((each, j) => i === j ? bad : each);
    }
  } else if (typeof good === "object" && good !== null) {
    for (const [name, part] of Object.entries(good)) {
      for (const bad of spoiled(part, odd)) yield { ...good, [name]: bad };
      const { [name]: _, ...without } = good;
      yield without;
    }
    yield { ...good, unknown_field: odd };
  }
}

async function documentOf(app: TestApp): Promise<ApiDocument> {
  return await (await app.get("/api/openapi.json")).json();
}

/** An operation with a valid body. */
interface JsonOperation {
  method: string;
  path: string;
  good: Json;
}

/** Every operation that takes a JSON body. */
function jsonOperations(document: ApiDocument): JsonOperation[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) => {
      const schema = requestBody?.content["application/json"]?.schema;
      if (schema === undefined) return [];
      return [{
        method: method.toUpperCase(),
        path: path.replace(/\{[^}]+\}/g, "x1"),
        good: sample(schema, document),
      }];
    })
  );
}

/** The body as a client could write it: `__proto__x` stands for a key that an object literal cannot hold. */
const textOf = (body: Json) => JSON.stringify(body).replaceAll("__proto__x", "__proto__");

/** Bodies tried on one route; a document of many fields gives tens of thousands. */
const MAX_BODIES = isLong() ? Infinity : 250;
/** Routes tried at the same time: most requests wait for the disk, and these share its syncs. */
const AT_ONCE = 8;
/** Some thousand requests, on a machine that may be busy with other work. */
const MANY_REQUESTS_MS = 180_000;

test(
  "no JSON route responds with 5xx to a body that is null, of another type, or with a missing or additional field",
  { tags: ["P12"], timeout: MANY_REQUESTS_MS },
  async () => {
    await using app = await openTestApp();
    const document = await documentOf(app);
    const operations = jsonOperations(document);
    expect(operations.length).toBeGreaterThan(3);
    const tryOne = async ({ method, path, good }: JsonOperation) => {
      const bodies = new Set(ODD_VALUES.flatMap((odd) => [...spoiled(good, odd)].map(textOf)));
      // Spread over all of them, the same in every run.
      const step = Math.max(1, Math.ceil(bodies.size / MAX_BODIES));
      for (const body of [...bodies].filter((_, i) => i % step === 0)) {
        // No model server is called: the sample addresses are invalid, and the demo needs none.
        const answer = await app.request(method, path, body, { headers: { "content-type": "application/json" } });
        if (answer.status >= 500 && !isOutside(answer.status)) {
          throw new Error(`${method} ${path} answered ${answer.status} to ${body}: ${await answer.text()}`);
        }
        await answer.body?.cancel();
      }
    };
    const waiting = operations.values();
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      for (const operation of waiting) await tryOne(operation);
    }));
    expect(app.logLines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
    expect((await app.get("/api/setup/status")).status).toBe(200);
  },
);

/** 502 to 504 are failures of another server. */
function isOutside(status: number): boolean {
  return status >= 502 && status <= 504;
}

test.each([
  ["arrays", "[".repeat(100_000)],
  ["whole arrays", "[".repeat(100_000) + "]".repeat(100_000)],
  ["objects", '{"a":'.repeat(100_000) + "1" + "}".repeat(100_000)],
  [
    "a field nested",
    `{"draft":${"[".repeat(100_000)}${"]".repeat(100_000)},"messages":[],"x":${"[".repeat(50_000)}${
      "]".repeat(50_000)
    }}`,
  ],
  ["a number without end", `{"n":${"9".repeat(300_000)}}`],
  ["duplicate keys", '{"draft":1,"draft":2,"messages":[],"messages":3}'],
])("hundreds of thousands of %s end no route and no process", { tags: ["P12", "P07"] }, async (_name, body) => {
  await using app = await openTestApp();
  for (const { method, path } of jsonOperations(await documentOf(app))) {
    const answer = await app.request(method, path, body, { headers: { "content-type": "application/json" } });
    expect([method, path, answer.status]).toEqual([
      method,
      path,
      expect.toSatisfy((status: number) => status < 500 || isOutside(status)),
    ]);
    await answer.body?.cancel();
  }
  expect((await app.get("/api/setup/status")).status).toBe(200);
});

test.each([
  ["objects", '{"a":', "1", "}"],
  ["arrays", "[", "", "]"],
  ["arrays with odd strings", '["\\\\\\"[",{"]":', "1", "}]"],
])(
  "responds to a document with thousands of nested %s in a field with 400, and loses nothing",
  { tags: ["P07"] },
  async (...nest) => {
    const [, open, inner, close] = nest;
    await using app = await openTestApp();
    const documents: [string, string, (field: string) => string][] = [
      ["PUT", "/api/conversations/c1", (field) => `{"messages":[{"id":"m","role":"user","content":"x","x":${field}}]}`],
      ["PATCH", "/api/conversations/c1", (field) => `{"x":${field}}`],
      ["PATCH", "/api/conversations/c1/messages/m", (field) => `{"x":${field}}`],
      ["PUT", "/api/characters/fox", (field) => `{"name":"Fox","description":"","x":${field}}`],
      ["PUT", "/api/image/workflows/w1", (field) => `{"1":{"class_type":"K","inputs":{"a":${field}}}}`],
      ["PUT", "/api/lorebooks/l1", (field) => `{"name":"L","entries":[],"x":${field}}`],
      ["PUT", "/api/presets/p1", (field) => `{"name":"P","x":${field}}`],
      ["POST", "/api/chat", (field) => `{"messages":[{"role":"user","content":"x"}],"stream":false,"x":${field}}`],
    ];
    for (const [method, path, withField] of documents) {
      for (const [depth, expected] of [[20, "fine"], [50_000, 400]] as const) {
        const body = withField(open.repeat(depth) + inner + close.repeat(depth));
        const answer = await app.request(method, path, body, { headers: { "content-type": "application/json" } });
        expect([path, depth, answer.status < 300 ? "fine" : answer.status]).toEqual([path, depth, expected]);
        await answer.body?.cancel();
      }
    }
    expect((await (await app.get("/api/conversations")).json())[0].messages).toHaveLength(1);
  },
);

describe("IDs", () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await openTestApp();
  });
  afterAll(() => app[Symbol.asyncDispose]());

  test.each([
    ...["..", ".", "%2e%2e", "..%2f..%2fx", "a%00b", "a%5cb", "a%2fb", "%ff", "%", "%zz", "x".repeat(300), ".hidden"],
    ...["discover", "import", "a b", "a%0d%0ab", "ünïcode", "x".repeat(65)],
    ...["CON", "nul", "Aux", "prn", "com1", "LPT9", "nul.json", "COM%C2%B9", "con%20"],
  ])(
    "the ID %j gets 400 or 404 on every route that takes one, and is never a defect",
    { tags: ["P01"] },
    async (id) => {
      const document = await documentOf(app);
      for (const [path, operations] of Object.entries(document.paths)) {
        // The card site chooses its names; routes/card_site.test.ts tests unusual ones.
        if (!path.includes("{") || path.includes("{creator}")) continue;
        for (const method of Object.keys(operations)) {
          const target = path.replace(/\{[^}]+\}/g, id).replace(/[^\x21-\x7e]/g, (c) => encodeURIComponent(c));
          const body = ["put", "patch", "post"].includes(method) ? '{"messages":[]}' : undefined;
          const headers: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
          const answer = await fetchAs(app, { method: method.toUpperCase(), path: target, headers, body });
          expect([method, target, answer.status]).toEqual([
            method,
            target,
            // An invalid ID may be the name of an attachment, whose body isn't JSON.
            expect.toSatisfy((status: number) =>
              [400, 404, 405, ...(path.includes("{name}") ? [415] : [])].includes(status)
            ),
          ]);
        }
      }
    },
  );
});

test.skipIf(Deno.build.os === "windows")(
  "SIGTERM under load ends streams, saves, and exits with 0",
  { tags: ["L06"] },
  async () => {
    const dataDir = await Deno.makeTempDir({ prefix: "parlor-test-" });
    try {
      await using server = await startChildServer({ dataDir });
      const events = await server.request("GET", "/api/events");
      const writes = Array.from(
        { length: 50 },
        (_, i) => server.request("PUT", `/api/conversations/c${i}`, { messages: [] }),
      );
      const first = await Promise.race(writes);
      const ended = server.kill("SIGTERM");
      expect(await events.text()).toContain(": open");
      expect((await ended).code).toBe(0);
      const answers = [
        first,
        ...(await Promise.allSettled(writes)).flatMap((r) => r.status === "fulfilled" ? [r.value] : []),
      ];
      const acknowledged = new Set(
        answers.filter(({ status }) => status === 201).map(({ url }) => url.split("/").at(-1)),
      );
      expect(acknowledged.size).toBeGreaterThan(0);
      await using again = await openTestApp({ dataDir });
      const kept: { id: string }[] = await (await again.get("/api/conversations")).json();
      expect(kept.map(({ id }) => id)).toEqual(expect.arrayContaining([...acknowledged]));
    } finally {
      await Deno.remove(dataDir, { recursive: true });
    }
  },
);
