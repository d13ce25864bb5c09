import { encryptNotification, vapidHeaders } from "@block65/webcrypto-web-push";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { delay } from "../../../services/async/delay.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { makeVapidKeys, Push } from "../../../services/push/push.ts";
import { ask, gather, until, useModel } from "../../helpers/app/chat_client.ts";
import { openTestGuard, PRIVATE, PUBLIC, type TestGuard } from "../../helpers/network/loopback_guard.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { answerText, FakeTools } from "../../helpers/fakes/fake_tools.ts";
import { type Authority, openAuthority } from "../../helpers/files/net_certificates.ts";
import { flipSealed } from "../../helpers/files/damage.ts";
import { filesWithText } from "../../helpers/files/storage_folder.ts";

const BASE64URL = { alphabet: "base64url", omitPadding: true } as const;
const bytesOf = (text: string) => Uint8Array.fromBase64(text, { alphabet: "base64url" });
const textOf = (bytes: Uint8Array) => bytes.toBase64(BASE64URL);

/** RFC 8291, appendix A. */
const RFC = {
  text: "When I grow up, I want to be a watermelon",
  serverPublic: "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
  serverPrivate: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw",
  devicePublic: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  devicePrivate: "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
  salt: "DGv6ra1nlYgDCS1FRnbzlw",
  body:
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl" +
    "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
};
const KEYS = { p256dh: RFC.devicePublic, auth: RFC.auth };

async function importKey(publicText: string, privateText: string): Promise<CryptoKeyPair> {
  const point = bytesOf(publicText);
  const jwk = { kty: "EC", crv: "P-256", x: textOf(point.slice(1, 33)), y: textOf(point.slice(33)) };
  const algorithm = { name: "ECDH", namedCurve: "P-256" };
  return {
    publicKey: await crypto.subtle.importKey("jwk", jwk, algorithm, true, []),
    privateKey: await crypto.subtle.importKey("jwk", { ...jwk, d: privateText }, algorithm, false, ["deriveBits"]),
  };
}

async function deriveKey(salt: Uint8Array, secret: Uint8Array, info: Uint8Array, length: number): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey("raw", new Uint8Array(secret), "HKDF", false, ["deriveBits"]);
  const algorithm = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(salt), info: new Uint8Array(info) };
  return new Uint8Array(await crypto.subtle.deriveBits(algorithm, key, length * 8));
}

/** Decrypts a message as the browser of the device does (RFC 8291, section 3.4; RFC 8188). */
async function decrypt(body: Uint8Array): Promise<string> {
  const device = await importKey(RFC.devicePublic, RFC.devicePrivate);
  const [salt, sender, sealed] = [body.slice(0, 16), body.slice(21, 86), body.slice(86)];
  const senderKey = await crypto.subtle.importKey("raw", sender, { name: "ECDH", namedCurve: "P-256" }, false, []);
  const shared = await crypto.subtle.deriveBits({ name: "ECDH", public: senderKey }, device.privateKey, 256);
  const encoder = new TextEncoder();
  const about = new Uint8Array([...encoder.encode("WebPush: info\0"), ...bytesOf(RFC.devicePublic), ...sender]);
  const secret = await deriveKey(bytesOf(RFC.auth), new Uint8Array(shared), about, 32);
  const raw = await deriveKey(salt, secret, encoder.encode("Content-Encoding: aes128gcm\0"), 16);
  const iv = new Uint8Array(await deriveKey(salt, secret, encoder.encode("Content-Encoding: nonce\0"), 12));
  const key = await crypto.subtle.importKey("raw", new Uint8Array(raw), "AES-GCM", false, ["decrypt"]);
  const plain = new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, sealed));
  return new TextDecoder().decode(plain.slice(0, plain.lastIndexOf(2)));
}

let authority: Authority;
let service: Deno.HttpServer<Deno.NetAddr>;
let guard: TestGuard;
let app: TestApp;
let status = 201;
/** Status of the next response only, with its Retry-After in seconds, and what happens before it. */
let busy: { status: number; retryAfter?: string; before?: () => void } | undefined;
const revoked = new Set<string>();
const received: { path: string; headers: Headers; body: Uint8Array }[] = [];
let nowMs = Date.parse("2026-06-01T12:00:00Z");

beforeAll(async () => {
  authority = await openAuthority();
});
afterAll(() => authority[Symbol.asyncDispose]());
beforeEach(async () => {
  const tls = await authority.issue({ name: "push.example.org" });
  service = Deno.serve({ hostname: PUBLIC, port: 0, onListen: () => {}, ...tls }, async (request) => {
    received.push({
      path: new URL(request.url).pathname,
      headers: request.headers,
      body: new Uint8Array(await request.arrayBuffer()),
    });
    const once = busy;
    busy = undefined;
    once?.before?.();
    return new Response(null, {
      status: once?.status ?? status,
      headers: once?.retryAfter === undefined ? {} : { "retry-after": once.retryAfter },
    });
  });
  guard = await openTestGuard({ "push.example.org": [PUBLIC], "inside.example.org": [PRIVATE] }, {
    caCerts: [authority.cert],
    exactOrigins: [`https://push.example.org:${service.addr.port}`],
  });
  app = await openTestApp();
  status = 201;
  busy = undefined;
  revoked.clear();
  received.length = 0;
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await guard[Symbol.asyncDispose]();
  await service.shutdown();
});

const endpoint = (path = "abc") => `https://push.example.org:${service.addr.port}/send/${path}`;
const logged: unknown[][] = [];
const page = (page: string, isVisible: boolean, isUsed = false) => ({ page, isVisible, isUsed });

/** The service with a guard that treats a loopback address as public. */
function openPush(retryDelaysMs: number[] = []): Push {
  logged.length = 0;
  return new Push({
    db: tableInMemory(),
    sealer: createSealer(new Uint8Array(32)).forPurpose("push"),
    events: app.services.events,
    log: (...line) => void logged.push(line),
    now: () => nowMs,
    openGuard: () => Promise.resolve(guard),
    getLanguage: () => "de",
    hasAccess: ({ credentialId = "" }) => Promise.resolve(!revoked.has(credentialId)),
    retryDelaysMs,
  });
}

/** The table `setting` with one row, in memory. */
function tableInMemory() {
  let row: { version: number; sealed: Uint8Array } | undefined;
  return {
    get: () => row,
    write: (statements: { params: unknown[] }[]) => {
      const { params } = statements[0]!;
      row = { version: params[1] as number, sealed: params[2] as Uint8Array };
      return Promise.resolve([]);
    },
  } as unknown as ConstructorParameters<typeof Push>[0]["db"];
}

test("the encryption reproduces the example of RFC 8291 byte for byte", async () => {
  const pair = await importKey(RFC.serverPublic, RFC.serverPrivate);
  const generate = vi.spyOn(crypto.subtle, "generateKey").mockImplementation((() => Promise.resolve(pair)) as never);
  const random = vi.spyOn(crypto, "getRandomValues").mockImplementation((target) => {
    (target as unknown as Uint8Array).set(bytesOf(RFC.salt));
    return target;
  });
  try {
    const subscription = { endpoint: "https://push.example.net", expirationTime: null, keys: KEYS };
    const body = await encryptNotification(subscription, new TextEncoder().encode(RFC.text), { pad: false });
    expect(textOf(body)).toBe(RFC.body);
  } finally {
    generate.mockRestore();
    random.mockRestore();
  }
  expect(await decrypt(bytesOf(RFC.body))).toBe(RFC.text);
});

test("the header identifies the server as in RFC 8292, for one push service and half a day", async () => {
  const keys = await makeVapidKeys();
  const { headers } = await vapidHeaders(
    { endpoint: "https://push.example.net/push/abc", expirationTime: null, keys: KEYS },
    { subject: "mailto:parlor@example.org", ...keys },
  );
  const [, head, claims, signature, k] = /^vapid t=([\w-]+)\.([\w-]+)\.([\w-]+), k=([\w-]+)$/.exec(
    headers.authorization,
  )!;
  expect(k).toBe(keys.publicKey);
  expect(JSON.parse(new TextDecoder().decode(bytesOf(head!)))).toEqual({ typ: "JWT", alg: "ES256" });
  const { aud, exp, sub } = JSON.parse(new TextDecoder().decode(bytesOf(claims!)));
  expect([aud, sub]).toEqual(["https://push.example.net", "mailto:parlor@example.org"]);
  expect(exp * 1000 - Date.now()).toBeLessThanOrEqual(24 * 60 * 60 * 1000);
  const key = await crypto.subtle.importKey("raw", bytesOf(k!), { name: "ECDSA", namedCurve: "P-256" }, false, [
    "verify",
  ]);
  const isRight = await crypto.subtle.verify(
    { name: "ECDSA", hash: "SHA-256" },
    key,
    bytesOf(signature!),
    new TextEncoder().encode(`${head}.${claims}`),
  );
  expect(isRight).toBe(true);
});

test("a device is notified of a reply, and the name of the chat is only in the part that its vendor can't read", async () => {
  const push = openPush();
  expect(await push.put("d1", { endpoint: endpoint(), keys: KEYS, label: "Phone" })).toMatchObject({
    vendor: `push.example.org:${service.addr.port}`,
  });
  push.replyCompleted({ conversationId: "secret-chat" });
  await until(() => received.length === 1, "the push service is called");
  const [{ path, headers, body }] = received as [typeof received[number]];
  expect(path).toBe("/send/abc");
  expect(Object.fromEntries(headers)).toMatchObject({
    "content-encoding": "aes128gcm",
    ttl: "86400",
    urgency: "high",
    authorization: expect.stringContaining(`k=${await push.getPublicKey()}`),
  });
  expect(new TextDecoder("latin1").decode(body) + JSON.stringify([...headers])).not.toContain("secret-chat");
  expect(JSON.parse(await decrypt(body))).toEqual({ kind: "reply", conversation_id: "secret-chat", language: "de" });
  await push.close();
});

test("devices and an ntfy server are notified that a reply is waiting for a decision, unless a page is in use", async () => {
  const notices: string[] = [];
  await using ntfy = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    notices.push(await request.text());
    return Response.json({});
  });
  const push = openPush();
  await push.put("d1", { endpoint: endpoint(), keys: KEYS, label: "Phone" });
  await push.putServer({ kind: "ntfy", url: `http://127.0.0.1:${ntfy.addr.port}/topic` });
  push.recordPresence("d1", page("page1", true, true));
  push.notifyApproval({ conversationId: "c1" });
  push.recordPresence("d1", page("page1", false));
  push.notifyApproval({ conversationId: "c2" });
  await until(() => received.length === 1 && notices.length === 1, "both are told");
  expect(JSON.parse(await decrypt(received[0]!.body))).toEqual({
    kind: "approval",
    conversation_id: "c2",
    language: "de",
  });
  expect(notices).toEqual(["A reply needs you"]);
  await push.close();
});

test("devices and a server are told that stored data is damaged, without what it is", async () => {
  const notices: string[] = [];
  await using ntfy = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    notices.push(await request.text());
    return Response.json({});
  });
  const push = openPush();
  await push.put("d1", { endpoint: endpoint(), keys: KEYS, label: "Phone" });
  await push.putServer({ kind: "ntfy", url: `http://127.0.0.1:${ntfy.addr.port}/topic` });
  push.notifyDamage();
  await until(() => received.length === 1 && notices.length === 1, "both are told");
  expect(JSON.parse(await decrypt(received[0]!.body))).toEqual({ kind: "damage", language: "de" });
  expect(notices).toEqual(["Stored data is damaged or missing"]);
  await push.close();
});

test.each(
  [
    ["ntfy", "Stored data is damaged or missing"],
    ["gotify", '{"title":"Parlor","message":"Stored data is damaged or missing","priority":5}'],
  ] as const,
)("damage that a check finds is sent to %s once, however often it is found again", async (kind, text) => {
  const notices: string[] = [];
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    notices.push(await request.text());
    return Response.json({});
  });
  await app.put("/api/push/server", { kind, url: `http://127.0.0.1:${server.addr.port}/topic`, token: "t" });
  for (const id of ["b1", "b2"]) await app.put(`/api/lorebooks/${id}`, { name: "Book", book: { entries: [] } });
  const damage = (id: string) =>
    flipSealed(app.dataDir, { table: "document", column: "sealed", where: `id = '${id}'` });
  const check = async () => (await (await app.post("/api/data/check")).json()).items.length;
  damage("b1");
  expect(await check()).toBe(1);
  await until(() => notices.length === 1, "the first finding is told");
  expect(await check()).toBe(1);
  await app.restart();
  expect(await check()).toBe(1);
  damage("b2");
  expect(await check()).toBe(2);
  await until(() => notices.length === 2, "the second finding is told");
  expect(await check()).toBe(2);
  expect((await app.post("/api/push/server/test")).status).toBe(204);
  expect(notices).toEqual([text, text, expect.stringContaining("A reply is ready")]);
});

test("a reply whose call waits for a decision notifies an ntfy server once, and again when it is ready", async () => {
  const notices: string[] = [];
  await using ntfy = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    notices.push(await request.text());
    return Response.json({});
  });
  const tools = new FakeTools().set("lookup", () => answerText("found"));
  await using other = await openTestApp({ toolSources: [() => Promise.resolve(tools)] });
  await (await other.put("/api/push/server", { kind: "ntfy", url: `http://127.0.0.1:${ntfy.addr.port}/t` })).json();
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  await useModel(other, llm);
  const asked = ask(other, 1);
  await (await llm.nextCall()).callTools({ id: "call_1", name: "lookup", arguments: "{}" });
  const reply = gather(await asked);
  await until(() => notices.length === 1, "ntfy is told that the call waits");
  await other.post("/api/chat/replies/a1/tool_calls/call_1", { decision: "allow" });
  const second = await llm.nextCall();
  await second.emit("Found.");
  await second.finish();
  await reply;
  await until(() => notices.length === 2, "ntfy is told that the reply is ready");
  expect(notices).toEqual(["A reply needs you", "A reply is ready"]);
});

test("only the latest hundred pages of a device count as visible", async () => {
  const push = openPush();
  await push.put("d1", { endpoint: endpoint(), keys: KEYS, label: "Phone" });
  for (let n = 0; n < 150; n++) push.recordPresence("d1", page(`page${n}`, true));
  for (let n = 51; n < 150; n++) push.recordPresence("d1", page(`page${n}`, false));
  push.replyCompleted({ conversationId: "c1" });
  push.recordPresence("d1", page("page50", false));
  push.replyCompleted({ conversationId: "c2" });
  await until(() => received.length === 1, "the push service is called");
  expect(JSON.parse(await decrypt(received[0]!.body)).conversation_id).toBe("c2");
  await push.close();
});

test("a device with a visible page isn't notified until the page is hidden or silent for a long time", async () => {
  const push = openPush();
  await push.put("d1", { endpoint: endpoint(), keys: KEYS, label: "Phone" });
  push.recordPresence("d1", page("page1", true));
  push.recordPresence("d1", page("page2", true));
  push.recordPresence("d1", page("page1", false));
  push.replyCompleted({ conversationId: "c1" });
  nowMs += 76_000;
  push.replyCompleted({ conversationId: "c2" });
  await until(() => received.length === 1, "the push service is called");
  expect(JSON.parse(await decrypt(received[0]!.body)).conversation_id).toBe("c2");
  push.recordPresence("d1", page("page2", true));
  push.recordPresence("d1", page("page2", false));
  push.replyCompleted({ conversationId: "c3" });
  await until(() => received.length === 2, "the push service is called again");
  expect(() => push.recordPresence("d2", page("page1", true))).toThrow(expect.objectContaining({ code: "not_found" }));
  await push.close();
});

test.each([404, 410])("a subscription that has ended (%i) is removed", async (ended) => {
  const push = openPush();
  await push.put("d1", { endpoint: endpoint(), keys: KEYS, label: "Phone" });
  status = ended;
  push.replyCompleted({ conversationId: "c1" });
  await until(async () => (await push.list()).length === 0, "the device is removed");
  await push.close();
});

test("a push service that fails doesn't remove the device, and is logged without the address", async () => {
  const push = openPush();
  await push.put("d1", { endpoint: endpoint("secret"), keys: KEYS, label: "Phone" });
  status = 500;
  push.replyCompleted({ conversationId: "c1" });
  await until(() => logged.length > 0, "the failure is logged");
  expect(logged[0]).toMatchObject(["warn", "Can't send a notification", { host: expect.any(String), status: 500 }]);
  expect(JSON.stringify(logged)).not.toContain("secret");
  expect(await push.list()).toHaveLength(1);
  await push.close();
});

test.each([429, 503])(
  "a push service that is busy (%i) is retried after the time that it names",
  async (busyStatus) => {
    const push = openPush([10, 10]);
    await push.put("d1", { endpoint: endpoint(), keys: KEYS, label: "Phone" });
    busy = { status: busyStatus, retryAfter: "1" };
    const startedAtMs = performance.now();
    push.replyCompleted({ conversationId: "c1" });
    await until(() => received.length === 2, "the push service is called again");
    expect(performance.now() - startedAtMs).toBeGreaterThan(900);
    await push.close();
    expect(logged.map(([level]) => level)).not.toContain("warn");
  },
);

test.each([
  ["a refusal", { status: 400 }, 1],
  ["a wait of an hour", { status: 429, retryAfter: "3600" }, 1],
])("%s isn't retried", async (_, once, calls) => {
  const push = openPush([1]);
  await push.put("d1", { endpoint: endpoint(), keys: KEYS, label: "Phone" });
  busy = once;
  push.replyCompleted({ conversationId: "c1" });
  await until(() => logged.some(([level]) => level === "warn"), "the failure is logged");
  expect(received).toHaveLength(calls);
  await push.close();
});

test("a notification isn't retried once someone has looked", async () => {
  const push = openPush([1]);
  await push.put("d1", { endpoint: endpoint(), keys: KEYS, label: "Phone" });
  busy = { status: 503, before: () => push.recordPresence("d1", page("page1", true)) };
  push.replyCompleted({ conversationId: "c1" });
  await until(() => logged.some(([, line]) => String(line).startsWith("Trying")), "the failure is noted");
  // Timers end in the order of their times, so it has been decided by then whether to try again.
  await delay(20);
  nowMs += 76_000;
  push.replyCompleted({ conversationId: "c2" });
  const told = () => Promise.all(received.map(async ({ body }) => JSON.parse(await decrypt(body)).conversation_id));
  await until(async () => (await told()).includes("c2"), "the next notification is sent");
  expect(await told()).toEqual(["c1", "c2"]);
  await push.close();
});

test("nobody is notified while a page is in use on any device; a page that is only visible doesn't stop other devices", async () => {
  const notices: string[] = [];
  await using ntfy = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    notices.push(await request.text());
    return Response.json({});
  });
  const push = openPush();
  expect(push.recordPagePresence(page("desk", true, true))).toBe(false);
  await push.put("d1", { endpoint: endpoint(), keys: KEYS, label: "Phone" });
  await push.putServer({ kind: "ntfy", url: `http://127.0.0.1:${ntfy.addr.port}/topic` });
  expect(push.recordPagePresence(page("desk", true, true))).toBe(true);
  push.replyCompleted({ conversationId: "c1" });
  expect(push.recordPagePresence(page("desk", true, false))).toBe(true);
  push.replyCompleted({ conversationId: "c2" });
  await until(() => received.length === 1 && notices.length === 1, "both are told of the second reply");
  push.recordPagePresence(page("desk", true, true));
  push.replyCompleted({ conversationId: "c3" });
  nowMs += 76_000;
  push.replyCompleted({ conversationId: "c4" });
  await until(() => received.length === 2 && notices.length === 2, "both are told of the fourth reply");
  const told = await Promise.all(received.map(async ({ body }) => JSON.parse(await decrypt(body)).conversation_id));
  expect(told).toEqual(["c2", "c4"]);
  await push.close();
});

test("a device whose passkey was revoked is removed instead of notified", async () => {
  const push = openPush();
  await push.put("d1", { endpoint: endpoint("lost"), keys: KEYS, label: "Lost" }, { credentialId: "k1" });
  await push.put("d2", { endpoint: endpoint("kept"), keys: KEYS, label: "Kept" }, { credentialId: "k2" });
  revoked.add("k1");
  push.replyCompleted({ conversationId: "c1" });
  await until(() => received.length === 1 && logged.length > 0, "the other device is notified");
  expect(received[0]!.path).toBe("/send/kept");
  expect(await push.list()).toMatchObject([{ id: "d2" }]);
  revoked.add("k2");
  expect(await push.list()).toEqual([]);
  await push.close();
});

test.each([
  ["http://push.example.org/x", KEYS, "invalid_request"],
  ["https://127.0.0.1/x", KEYS, "address_not_allowed"],
  ["https://push.example.org/x", { ...KEYS, auth: "AAAA" }, "invalid_request"],
  ["https://push.example.org/x", { ...KEYS, p256dh: "!" }, "invalid_request"],
  // 65 bytes that begin like an uncompressed point.
  ["https://push.example.org/x", { ...KEYS, p256dh: `BA${"A".repeat(85)}` }, "invalid_request"],
])("rejects a subscription of %s with keys %o", async (address, keys, code) => {
  const push = openPush();
  await expect(push.put("d1", { endpoint: address, keys, label: "Phone" })).rejects.toMatchObject({ code });
  expect(await push.list()).toEqual([]);
});

test("a name that leads into the private network is rejected when a notification is sent", async () => {
  const push = openPush();
  await push.put("d1", { endpoint: "https://inside.example.org/x", keys: KEYS, label: "Phone" });
  push.replyCompleted({ conversationId: "c1" });
  await until(() => logged.length > 0, "the refusal is logged");
  expect(logged[0]![1]).toBe("Can't send a notification");
  await push.close();
});

test("the API subscribes, lists and removes devices, which are encrypted on disk", async () => {
  const { public_key } = await (await app.get("/api/push/key")).json();
  expect(bytesOf(public_key)).toHaveLength(65);
  expect(await (await app.get("/api/push/key")).json()).toEqual({ public_key });
  const body = { endpoint: "https://fcm.googleapis.com/fcm/send/needle", keys: KEYS, label: "Chrome on Android" };
  const put = await app.put("/api/push/subscriptions/d1", body);
  expect([put.status, await put.json()]).toMatchObject([200, { id: "d1", vendor: "fcm.googleapis.com" }]);
  const list = await app.get("/api/push/subscriptions");
  const text = await list.text();
  expect(JSON.parse(text)).toMatchObject([{ id: "d1", label: "Chrome on Android", vendor: "fcm.googleapis.com" }]);
  expect(text).not.toContain("needle");
  expect((await app.put("/api/push/subscriptions/d1/presence", { page: "p", visible: true })).status).toBe(204);
  expect((await app.put("/api/push/subscriptions/d2/presence", { page: "p", visible: true })).status).toBe(404);
  const used = { page: "p", visible: true, used: true };
  expect(await (await app.put("/api/push/presence", used)).json()).toEqual({ needed: true });
  await app.restart();
  expect(await (await app.get("/api/push/key")).json()).toEqual({ public_key });
  for (const needle of ["needle", RFC.auth, public_key]) expect(await filesWithText(app.dataDir, needle)).toEqual([]);
  expect((await app.delete("/api/push/subscriptions/d1")).status).toBe(204);
  expect((await app.delete("/api/push/subscriptions/d1")).status).toBe(404);
  expect(await (await app.put("/api/push/presence", used)).json()).toEqual({ needed: false });
});

test("revoking the token that a device subscribed with ends its notifications", async () => {
  const { record, token } = await app.services.auth.mintToken("Phone");
  const body = { endpoint: "https://fcm.googleapis.com/fcm/send/x", keys: KEYS, label: "Phone" };
  const headers = { authorization: `Bearer ${token}` };
  const put = await app.put("/api/push/subscriptions/d1", body, { headers });
  expect(put.status).toBe(200);
  expect(await (await app.get("/api/push/subscriptions")).json()).toHaveLength(1);
  await app.services.auth.revokeToken(record.id);
  expect(await (await app.get("/api/push/subscriptions")).json()).toEqual([]);
});

test("an ntfy server is notified of each complete reply, in four words, and its token is write-only", async () => {
  const seen: { path: string; title: string | null; authorization: string | null; body: string }[] = [];
  await using ntfy = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const { pathname: path } = new URL(request.url);
    const { headers } = request;
    seen.push({
      path,
      title: headers.get("title"),
      authorization: headers.get("authorization"),
      body: await request.text(),
    });
    return path === "/refused" ? Response.json({ error: "forbidden" }, { status: 403 }) : Response.json({});
  });
  const url = `http://127.0.0.1:${ntfy.addr.port}`;
  expect((await app.put("/api/push/server", { kind: "ntfy", url })).status).toBe(400);
  const put = await app.put("/api/push/server", { kind: "ntfy", url: `${url}/topic`, token: "tk_needle" });
  expect(await put.json()).toEqual({ kind: "ntfy", url: `${url}/topic`, has_token: true });
  const llm = await openFakeLlm();
  try {
    await useModel(app, llm);
    await gather(await ask(app, 1));
    await until(() => seen.length === 1, "ntfy is told");
    llm.switches.fail = "status_json";
    await (await ask(app, 2)).body?.cancel();
  } finally {
    await llm.close();
  }
  expect((await app.post("/api/push/server/test")).status).toBe(204);
  const notice = { path: "/topic", title: "Parlor", authorization: "Bearer tk_needle", body: "A reply is ready" };
  expect(seen).toEqual([notice, notice]);

  await (await app.put("/api/push/server", { kind: "gotify", url })).body?.cancel();
  expect((await app.post("/api/push/server/test")).status).toBe(204);
  expect(seen.at(-1)).toMatchObject({
    path: "/message",
    body: '{"title":"Parlor","message":"A reply is ready","priority":5}',
  });
  await (await app.put("/api/push/server", { kind: "ntfy", url: `${url}/refused` })).body?.cancel();
  const refused = await app.post("/api/push/server/test");
  expect([refused.status, (await refused.json()).error.message]).toEqual([
    502,
    expect.stringContaining("check its token"),
  ]);
  const moved = await app.put("/api/push/server", { kind: "ntfy", url: "http://127.0.0.2:9/topic" });
  expect(await moved.json()).toMatchObject({ has_token: false });
  const removed = await app.put("/api/push/server", { kind: "ntfy", url: null });
  expect(await removed.json()).toMatchObject({ url: null });
  expect((await app.post("/api/push/server/test")).status).toBe(404);
  expect(await filesWithText(app.dataDir, "tk_needle")).toEqual([]);
});
