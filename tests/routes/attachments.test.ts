import { Buffer } from "node:buffer";
import { deflateSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ChangeEvent } from "../../services/events/event_hub.ts";
import { fixtureImage, makeGif } from "../helpers/files/image_files.ts";
import { attachmentFiles, dataUrl, noise, picture, picturePart, putPicture } from "../helpers/files/pictures.ts";
import { pngChunk, pngFile, pngHeader } from "../helpers/files/png_files.ts";
import { rawRequest } from "../helpers/network/raw_http.ts";
import { filesWithText } from "../helpers/files/storage_folder.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

const bytesOf = async (path: string) => new Uint8Array(await (await app.get(path)).arrayBuffer());
/** The pixels of an image of one pixel with alpha. */
const onePixel = pngChunk("IDAT", deflateSync(new Uint8Array(5)));
const codeOf = async (response: Response) => [response.status, (await response.json()).error.code];

test.each([
  ["a.png", picture(), "image/png", 4, 3],
  ["b.jpg", fixtureImage("quarters.jpg"), "image/jpeg", 48, 32],
  ["c.webp", fixtureImage("quarters_lossy.webp"), "image/webp", 48, 32],
  ["d.gif", makeGif({ width: 5, height: 6 }, { width: 5, height: 6 }), "image/gif", 5, 6],
  ["no_ending", picture(1), "image/png", 4, 3],
  ["lies.jpg", noise(400, 300), "image/png", 400, 300],
])("%s is stored, recognized by its content, and returned unchanged", async (name, bytes, type, width, height) => {
  const stored = await putPicture(app, name, bytes, { "Content-Type": "image/anything" });
  expect(stored.status).toBe(201);
  const facts = { name, url: `/api/attachments/${name}`, content_type: type, size_bytes: bytes.length, width, height };
  expect(await stored.json()).toEqual(facts);
  await app.restart();
  const fetched = await app.get(`/api/attachments/${name}`);
  expect(fetched.headers.get("content-type")).toBe(type);
  expect(fetched.headers.get("content-length")).toBe(String(bytes.length));
  expect(fetched.headers.get("etag")).toBe(stored.headers.get("etag"));
  expect(Buffer.from(await fetched.arrayBuffer()).equals(Buffer.from(bytes))).toBe(true);
});

test("an attachment is served only for display: fixed type, nosniff, sandbox, no caching, only for the own pages", {
  tags: ["P08"],
}, async () => {
  await putPicture(app, "a.png");
  const { headers } = await app.get("/api/attachments/a.png");
  expect(headers.get("content-type")).toBe("image/png");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("content-security-policy")).toMatch(/default-src 'none'.*sandbox/);
  expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
  expect(headers.get("cache-control")).toContain("no-store");
  expect(headers.get("content-disposition")).toBe('attachment; filename="a.png"');
});

test.each([
  ["SVG", "image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'],
  ["HTML called PNG", "image/png", "<!doctype html><script>alert(1)</script>"],
  ["PDF", "image/png", "%PDF-1.7\n".padEnd(2000, "x")],
  ["video in a RIFF", "image/webp", "RIFF\x24\0\0\0AVI LIST".padEnd(100, "\0")],
  ["nothing", "image/png", ""],
])("rejects %s by its content", { tags: ["P08"] }, async (_name, type, text) => {
  const stored = await app.put("/api/attachments/x.png", new TextEncoder().encode(text), {
    headers: { "Content-Type": type },
  });
  expect(await codeOf(stored)).toEqual([422, "unprocessable"]);
  expect((await app.get("/api/attachments/x.png")).status).toBe(404);
  expect(await attachmentFiles(app)).toEqual([]);
});

test("an image that is also a web page is served as an image", { tags: ["P08"] }, async () => {
  const script = new TextEncoder().encode("Comment\0<!doctype html><script>alert(1)</script>");
  const header = pngChunk("IHDR", pngHeader(1, 1, { colourType: 6, bitDepth: 8 }));
  const polyglot = pngFile(header, pngChunk("tEXt", script), onePixel, pngChunk("IEND"));
  expect((await putPicture(app, "page.html", polyglot)).status).toBe(201);
  const { headers } = await app.get("/api/attachments/page.html");
  expect([headers.get("content-type"), headers.get("x-content-type-options")]).toEqual(["image/png", "nosniff"]);
});

test("rejects an image that claims to be 2^31 pixels wide", { tags: ["P05"] }, async () => {
  const header = pngChunk("IHDR", pngHeader(2 ** 31, 1, { colourType: 6, bitDepth: 8 }));
  expect(await codeOf(await putPicture(app, "wide.png", pngFile(header, pngChunk("IEND"))))).toEqual([
    422,
    "unprocessable",
  ]);
});

test("rejects a few bytes that claim to be 30,000 × 30,000 pixels by their header, even within a message", {
  tags: ["P05"],
}, async () => {
  const header = pngChunk("IHDR", pngHeader(30_000, 30_000, { colourType: 6, bitDepth: 8 }));
  const large = pngFile(header, pngChunk("IEND"));
  expect(await codeOf(await putPicture(app, "large.png", large))).toEqual([422, "unprocessable"]);
  const gif = new TextEncoder().encode("GIF89a<script>alert(1)</script>");
  expect(await codeOf(await putPicture(app, "large.gif", gif))).toEqual([422, "unprocessable"]);
  const message = { id: "m1", role: "user", content: [picturePart(dataUrl(large))] };
  const answer = await app.put("/api/conversations/c1", { messages: [message] });
  expect(await codeOf(answer)).toEqual([422, "unprocessable"]);
});

test("an image may be sent as bytes of any type, because its content determines the type", async () => {
  const stored = await app.put("/api/attachments/x.png", picture(), {
    headers: { "Content-Type": "application/octet-stream" },
  });
  expect([stored.status, (await stored.json()).content_type]).toEqual([201, "image/png"]);
});

test.each(["text/plain", "application/json", "application/octet-streams"])(
  "rejects a body with the type %s",
  async (type) => {
    const stored = await app.put("/api/attachments/x.png", picture(), { headers: { "Content-Type": type } });
    expect(await codeOf(stored)).toEqual([415, "unsupported_media_type"]);
  },
);

test.each([
  ...["..", ".", "%2e%2e", "..%2f..%2fapp.db", ".hidden", "a%00b", "a%5cb", "a%2fb", "x".repeat(129)],
  ...["%ef%bc%8e%ef%bc%8e", "h%C3%A9ron.png", "he%CC%81ron.png", "a%20b", "a%22b"],
])("every method rejects the name %s", { tags: ["P01"] }, async (name) => {
  for (const method of ["GET", "DELETE", "PUT"]) {
    const body = method === "PUT" ? "Content-Type: image/png\r\nContent-Length: 3\r\n\r\nabc" : "\r\n";
    const answer = await rawRequest(
      app.port,
      `${method} /api/attachments/${name} HTTP/1.1\r\nHost: localhost:${app.port}\r\nConnection: close\r\n${body}`,
    );
    expect([400, 404], `${method} ${answer.body}`).toContain(answer.status);
  }
  expect(await attachmentFiles(app)).toEqual([]);
});

test.each(["CON", "nul.png", "Com1.tar.gz", "lpt9", "aux.", "PRN.json"])(
  "rejects the device name %s",
  { tags: ["P01"] },
  async (name) => {
    expect(await codeOf(await putPicture(app, name))).toEqual([400, "invalid_request"]);
    expect(await codeOf(await app.get(`/api/attachments/${name}`))).toEqual([400, "invalid_request"]);
    expect(await attachmentFiles(app)).toEqual([]);
  },
);

test(
  "names can't differ only in case, and a name that only begins like a device's is valid",
  { tags: ["P01"] },
  async () => {
    for (const name of ["CONcert", "nul-1.png", "com10", "a".repeat(128)]) {
      expect((await putPicture(app, name)).status).toBe(201);
    }
    expect(await codeOf(await putPicture(app, "concert", picture(1)))).toEqual([409, "conflict"]);
    expect((await app.get("/api/attachments/concert")).status).toBe(404);
    expect(await bytesOf("/api/attachments/CONcert")).toEqual(picture());
    for (const name of await attachmentFiles(app)) expect(name).toMatch(/^[0-9a-f]{40}\.\d+$/);
  },
);

test.each(["declared", "chunked"])(
  "a file that is too large gets 413 and leaves nothing behind (%s)",
  { tags: ["P03"] },
  async (kind) => {
    await using small = await openTestApp({ config: { maxUploadBodyBytes: 100_000 } });
    const bytes = noise(200, 200);
    expect(bytes.length).toBeGreaterThan(100_000);
    const body = kind === "declared" ? bytes : ReadableStream.from([bytes.subarray(0, 60_000), bytes.subarray(60_000)]);
    const answer = await small.request("PUT", "/api/attachments/big.png", body, {
      headers: { "Content-Type": "image/png" },
    });
    expect(await codeOf(answer)).toEqual([413, "too_large"]);
    expect((await small.get("/api/attachments/big.png")).status).toBe(404);
    expect(await attachmentFiles(small)).toEqual([]);
  },
);

test("a body that is cut off in the middle changes nothing", async () => {
  await putPicture(app, "a.png", picture(1));
  const before = await attachmentFiles(app);
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: app.port });
  const head = `PUT /api/attachments/a.png HTTP/1.1\r\nHost: localhost:${app.port}\r\nContent-Type: image/png\r\n` +
    "Content-Length: 100000\r\n\r\n";
  await connection.write(new Uint8Array([...new TextEncoder().encode(head), ...picture(2)]));
  await connection.closeWrite();
  await connection.readable.pipeTo(new WritableStream()).catch(() => {});
  expect(await bytesOf("/api/attachments/a.png")).toEqual(picture(1));
  // The connection may end before the half file is deleted.
  await expect.poll(() => attachmentFiles(app)).toEqual(before);
});

test("If-Match guards every change; without it a save overwrites, and only the new file remains", async () => {
  const first = await putPicture(app, "a.png", picture(1));
  const tag = first.headers.get("etag")!;
  const second = await putPicture(app, "a.png", picture(2), { "If-Match": tag });
  expect(second.status).toBe(200);
  expect(second.headers.get("etag")).not.toBe(tag);
  expect(await codeOf(await putPicture(app, "a.png", picture(3), { "If-Match": tag }))).toEqual([
    412,
    "revision_mismatch",
  ]);
  expect((await putPicture(app, "new.png", picture(3), { "If-Match": tag })).status).toBe(412);
  expect((await app.delete("/api/attachments/a.png", { headers: { "If-Match": tag } })).status).toBe(412);
  expect(await bytesOf("/api/attachments/a.png")).toEqual(picture(2));
  expect((await putPicture(app, "a.png", picture(4))).status).toBe(200);
  expect(await attachmentFiles(app)).toHaveLength(1);
});

test("a deleted attachment disappears immediately, can be restored, and is deleted with the trash", async () => {
  await putPicture(app, "a.png", picture(1));
  const told: ChangeEvent[] = [];
  const end = app.services.events.subscribe((event) => void told.push(event));
  expect((await app.delete("/api/attachments/a.png")).status).toBe(204);
  expect(told).toContainEqual({ kind: "attachment", id: "a.png" });
  expect(told).toContainEqual({ kind: "trash", id: "trash" });
  end();
  expect((await app.get("/api/attachments/a.png")).status).toBe(404);
  expect((await app.delete("/api/attachments/a.png")).status).toBe(404);
  const [item] = await (await app.get("/api/trash")).json();
  expect(item).toMatchObject({ kind: "attachment", title: "a.png" });

  // The API refuses the name, but an import may use it.
  await (await app.services.attachments()).put("a.png", ReadableStream.from([picture(2)]));
  expect((await app.post(`/api/trash/${item.id}/restore`)).status).toBe(409);
  await app.delete("/api/attachments/a.png");
  await app.restart();
  expect((await app.post(`/api/trash/${item.id}/restore`)).status).toBe(204);
  expect(await bytesOf("/api/attachments/a.png")).toEqual(picture(1));
  expect(await attachmentFiles(app)).toHaveLength(2);
  await app.delete("/api/trash");
  expect(await attachmentFiles(app)).toHaveLength(1);
  expect(await bytesOf("/api/attachments/a.png")).toEqual(picture(1));
});

test("no marker text of an image is found in the data directory", { tags: ["K01"] }, async () => {
  const needle = "needle-in-a-picture-7f3a";
  const text = new TextEncoder().encode(`Comment\0${needle.repeat(5000)}`);
  const header = pngChunk("IHDR", pngHeader(1, 1, { colourType: 6, bitDepth: 8 }));
  const file = pngFile(header, pngChunk("tEXt", text), onePixel, pngChunk("IEND"));
  expect((await putPicture(app, "a.png", file)).status).toBe(201);
  const messages = [{
    role: "user",
    content: [{
      type: "image_url",
      image_url: { url: `data:image/png;base64,${Buffer.from(file).toString("base64")}` },
    }],
  }];
  expect((await app.put("/api/conversations/c1", { messages })).status).toBe(201);
  await app.delete("/api/attachments/a.png");
  expect(await attachmentFiles(app)).toHaveLength(2);
  const inBase64 = Buffer.from(needle.repeat(3)).toString("base64").slice(8, 40);
  for (const searched of [needle, inBase64, "needle-in"]) {
    expect(await filesWithText(app.dataDir, searched)).toEqual([]);
  }
});

test("a file that was changed, truncated or swapped is an error, never another image", async () => {
  await putPicture(app, "a.png", noise(300, 300));
  await putPicture(app, "b.png", noise(300, 300));
  const [one, other] = (await attachmentFiles(app)).map((name) => `${app.dataDir}/attachments/${name}`);
  const genuine = await Deno.readFile(one!);
  const names = ["a.png", "b.png"];
  const expectRefused = async () => {
    const broken = await Promise.all(names.map(async (name) => {
      const response = await app.get(`/api/attachments/${name}`);
      return response.status === 200
        ? await response.arrayBuffer().then(() => "whole", () => "cut off")
        : response.status;
    }));
    expect(broken.filter((found) => found !== "whole")).toHaveLength(1);
  };
  const record = 64 * 1024 + 29;
  const flipped = genuine.slice();
  flipped[record + 500]! ^= 1;
  const swapped = new Uint8Array([
    ...genuine.subarray(record, 2 * record),
    ...genuine.subarray(0, record),
    ...genuine.subarray(2 * record),
  ]);
  for (const bad of [flipped, swapped, genuine.subarray(0, 2 * record), genuine.subarray(0, 100), new Uint8Array()]) {
    await Deno.writeFile(one!, bad);
    await expectRefused();
  }
  await Deno.copyFile(other!, one!);
  await expectRefused();
  await Deno.remove(one!);
  await expectRefused();
  await Deno.writeFile(one!, genuine);
  for (const name of names) expect((await bytesOf(`/api/attachments/${name}`)).length).toBeGreaterThan(300_000);
});
