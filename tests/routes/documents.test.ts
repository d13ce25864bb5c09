import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  addDocument,
  printPdf,
  readText,
  uploadDocument,
  waitForDocument,
  writePdf,
} from "../helpers/files/document_files.ts";
import { sniffImage } from "../../services/attachments/images/image_header.ts";
import { dataUrl, picture } from "../helpers/files/pictures.ts";
import { encodeText } from "../helpers/files/encode_text.ts";
import { filesWithText } from "../helpers/files/storage_folder.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { openStoredDatabase } from "../helpers/files/stored_database.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

const codeOf = async (response: Response) => [response.status, (await response.json()).error.code];

test("stores a PDF printed by a browser and reads its pages", async () => {
  const pdf = await printPdf([1, 2, 3, 4].map((n) => `<h1>Chapter ${n}</h1><p>The keyword is marmalade${n * 7}.</p>`));
  const response = await uploadDocument(app, "C:\\files\\my report.pdf", pdf);
  expect(response.status).toBe(201);
  const added = await response.json();
  expect(added).toMatchObject({
    name: "my report.pdf",
    content_type: "application/pdf",
    state: "extracting",
    pages: 0,
  });
  expect(added.size_bytes).toBe(pdf.length);
  const job = await (await app.get(`/api/jobs/${response.headers.get("x-parlor-job-id")}`)).json();
  expect(job).toMatchObject({ kind: "document", title: "my report.pdf" });
  const document = await waitForDocument(app, added.id);
  expect(document).toMatchObject({ state: "ready", pages: 4, unit: "page" });
  expect(document.tokens).toBeGreaterThan(20);
  await app.restart();
  const pages = await readText(app, added.id);
  expect(pages.map(({ n }) => n)).toEqual([1, 2, 3, 4]);
  pages.forEach(({ n, text }) =>
    expect(text).toMatch(new RegExp(`Chapter ${n}\\s+The keyword is marmalade${n * 7}\\.`))
  );
  expect((await readText(app, added.id, "2-3,99")).map(({ n }) => n)).toEqual([2, 3]);
  expect(await (await app.get("/api/documents")).json()).toEqual([document]);
});

test("a client chooses the id of a document, and no other document takes it", async () => {
  const add = (text: string, key?: string) => {
    const form = new FormData();
    form.append("file", new File([text], "keys.md"));
    return app.post("/api/documents?id=d1", form, { headers: key === undefined ? {} : { "idempotency-key": key } });
  };
  const both = await Promise.all([add("# Keys"), add("# Keys of the mill")]);
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  const first = both.find(({ status }) => status === 201)!;
  expect(await first.json()).toMatchObject({ id: "d1" });
  const link = await app.post("/api/documents?id=d1", { url: "https://example.com/keys" });
  expect(await codeOf(link)).toEqual([409, "conflict"]);
  const text = first === both[0] ? "# Keys" : "# Keys of the mill";
  expect(await (await app.get("/api/documents/d1/file")).text()).toBe(text);
  await app.delete("/api/documents/d1");
  expect(await codeOf(await add("# Locks"))).toEqual([409, "in_trash"]);
  expect(await codeOf(await app.post("/api/documents?id=../d2", { url: "https://example.com/" }))).toEqual([
    400,
    "invalid_request",
  ]);
  const again = () => {
    const form = new FormData();
    form.append("file", new File(["# Gates"], "gates.md"));
    return app.post("/api/documents?id=d2", form, { headers: { "idempotency-key": "k1" } });
  };
  for (const response of [await again(), await again()]) {
    expect([response.status, (await response.json()).id]).toEqual([201, "d2"]);
  }
});

test("a sweep doesn't delete an upload in progress", async () => {
  const { documents } = await app.services.documents();
  const half = new TextEncoder().encode("A line of the document.\n".repeat(20_000));
  async function* content() {
    yield half;
    await documents.sweep();
    yield half;
  }
  const { document } = await documents.add({ content: content(), getName: () => "notes.txt" });
  expect(document.sizeBytes).toBe(2 * half.length);
  expect(await waitForDocument(app, document.id)).toMatchObject({ state: "ready", name: "notes.txt" });
});

test("stores no readable text, name or original on disk", async () => {
  const text = "The unmistakable sentence of a private letter.\n".repeat(4_000);
  const { id } = await addDocument(app, "secretname.md", `# Letter\n\n${text}`);
  await addDocument(app, "printed.pdf", writePdf(["unmistakable line of a PDF"]));
  await app.delete(`/api/documents/${id}`);
  for (const secret of ["unmistakable", "secretname", "Letter", "%PDF"]) {
    expect(await filesWithText(app.dataDir, secret)).toEqual([]);
  }
});

test("sends the original, whole or in part, only for saving", { tags: ["P08"] }, async () => {
  const html = `<!doctype html><title>x</title><script>alert(1)</script><p>${"words ".repeat(40_000)}`;
  const { id } = await addDocument(app, "page.html", html);
  const whole = await app.get(`/api/documents/${id}/file`);
  expect(whole.headers.get("content-type")).toBe("text/plain");
  expect(whole.headers.get("content-disposition")).toContain('attachment; filename="page.html"');
  expect(whole.headers.get("content-security-policy")).toContain("sandbox");
  expect(whole.headers.get("content-length")).toBe(String(html.length));
  expect(await whole.text()).toBe(html);
  for (
    const [range, start, end] of [["bytes=0-9", 0, 10], ["bytes=65530-65545", 65530, 65546], [
      "bytes=-7",
      -7,
      undefined,
    ]] as const
  ) {
    const part = await app.get(`/api/documents/${id}/file`, { headers: { range } });
    expect(part.status).toBe(206);
    expect(await part.text()).toBe(html.slice(start, end));
  }
  const beyond = await app.get(`/api/documents/${id}/file`, { headers: { range: `bytes=${html.length}-` } });
  expect(await codeOf(beyond)).toEqual([416, "range_not_satisfiable"]);
});

test("moves a document to the trash and back, and deletes it for good", async () => {
  const { id } = await addDocument(app, "notes.txt", "Buy marmalade");
  expect((await app.delete(`/api/documents/${id}`)).status).toBe(204);
  expect(await codeOf(await app.get(`/api/documents/${id}`))).toEqual([404, "not_found"]);
  expect(await (await app.get("/api/documents")).json()).toEqual([]);
  const [item] = await (await app.get("/api/trash")).json();
  expect(item).toMatchObject({ kind: "document", title: "notes.txt" });
  await app.restart();
  expect((await app.post(`/api/trash/${item.id}/restore`)).ok).toBe(true);
  expect(await readText(app, id)).toEqual([{ n: 1, text: "Buy marmalade" }]);
  await app.delete(`/api/documents/${id}`);
  expect((await app.delete("/api/trash")).status).toBe(204);
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/documents`))).toEqual([]);
});

test.each([
  ["picture.png", new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13])],
  ["archive.zip", new Uint8Array([0x50, 0x4b, 0x03, 0x04, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0])],
  ["program", new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0])],
])("rejects %s and stores nothing of it", async (name, bytes) => {
  expect(await codeOf(await uploadDocument(app, name, bytes))).toEqual([415, "unsupported_media_type"]);
  expect(await (await app.get("/api/documents")).json()).toEqual([]);
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/documents`))).toEqual([]);
});

test("rejects a file above the limit and stores nothing of it", { tags: ["P03"] }, async () => {
  await app[Symbol.asyncDispose]();
  app = await openTestApp({ config: { maxDocumentBodyBytes: 100_000 } });
  expect((await uploadDocument(app, "fits.txt", "a ".repeat(50_000))).status).toBe(201);
  const response = await uploadDocument(app, "large.txt", "a ".repeat(50_001));
  expect(await codeOf(response)).toEqual([413, "too_large"]);
  expect((await Array.fromAsync(Deno.readDir(`${app.dataDir}/documents`))).length).toBe(1);
});

test("rejects forms without a file, and other types and other URLs", { tags: ["P04"] }, async () => {
  const form = new FormData();
  form.append("url", "https://example.org");
  expect(await codeOf(await app.post("/api/documents", form))).toEqual([400, "invalid_request"]);
  expect(await codeOf(await app.post("/api/documents", { url: "ftp://example.org/x" }))).toEqual([
    400,
    "invalid_request",
  ]);
  expect(await codeOf(await app.post("/api/documents", {}))).toEqual([400, "invalid_request"]);
  for (const url of ["http://127.0.0.1:8080/", "http://localhost/", "http://[::1]/", "http://169.254.169.254/latest"]) {
    expect(await codeOf(await app.post("/api/documents", { url })), url).toEqual([403, "address_not_allowed"]);
  }
  expect(await (await app.get("/api/documents")).json()).toEqual([]);
});

test("continues reading after a restart", async () => {
  const response = await uploadDocument(app, "long.txt", "A line of a long text.\n".repeat(300_000));
  const { id } = await response.json();
  await app.restart();
  const document = await waitForDocument(app, id);
  expect(document).toMatchObject({ state: "ready" });
  const pages = await readText(app, id);
  expect(pages.length).toBe(document.pages);
  expect(pages.map(({ text }) => text).join("\n").match(/A line of a long text\./g)!.length).toBe(300_000);
});

test("a document that was stored without its job, as after a crash, is read by a sweep", async () => {
  const { documents } = await app.services.documents();
  const start = vi.spyOn(app.services.jobs, "start").mockReturnValueOnce(new Promise(() => {}));
  const content = ReadableStream.from([new TextEncoder().encode("Buy marmalade")]);
  void documents.add({ content, getName: () => "notes.txt" });
  await expect.poll(() => start.mock.calls.length).toBe(1);
  const { id } = documents.list()[0]!;
  await documents.sweep();
  expect(await waitForDocument(app, id)).toMatchObject({ state: "ready", pages: 1 });
});

test("sends a page of a scan or of text as an image", async () => {
  const url = dataUrl(picture(3, 64));
  const scan = await printPdf([1, 2].map(() => `<img src="${url}" style="width: 100%">`));
  const { id, ...document } = await addDocument(app, "scan.pdf", scan);
  expect(document).toMatchObject({ state: "failed", error: { code: "no_text" }, pages: 2, unit: "page" });
  const image = await app.get(`/api/documents/${id}/pages/2/image`);
  expect([image.status, image.headers.get("content-type")]).toEqual([200, "image/jpeg"]);
  const facts = sniffImage(new Uint8Array(await image.arrayBuffer()));
  expect(facts).toMatchObject({ type: "image/jpeg" });
  const { id: text } = await addDocument(app, "notes.txt", "Only text");
  const { id: printed } = await addDocument(app, "text.pdf", writePdf(["Only text"]));
  const drawn = await app.get(`/api/documents/${printed}/pages/1/image`);
  expect([drawn.status, sniffImage(await drawn.bytes())]).toMatchObject([200, { type: "image/jpeg" }]);
  for (const path of [`${id}/pages/3`, `${text}/pages/1`, `${printed}/pages/2`]) {
    expect(await codeOf(await app.get(`/api/documents/${path}/image`)), path).toEqual([422, "unprocessable"]);
  }
  expect(await codeOf(await app.get(`/api/documents/${id}/pages/0/image`))).toEqual([400, "invalid_request"]);
  expect(await codeOf(await app.get("/api/documents/none/pages/1/image"))).toEqual([404, "not_found"]);
});

test.each(["0", "5-3", "a", "1-", ""])("rejects the pages %j", async (pages) => {
  const { id } = await addDocument(app, "notes.txt", "Buy marmalade");
  expect(await codeOf(await app.get(`/api/documents/${id}/text?pages=${pages}`))).toEqual([400, "invalid_request"]);
});

test("the search finds pages of documents, after all conversations, in pages", async () => {
  const { id } = await addDocument(
    app,
    "long.pdf",
    writePdf(Array.from({ length: 45 }, (_, n) => `Needle number ${n + 1}`)),
  );
  const { id: removed } = await addDocument(app, "removed.txt", "needle");
  await app.delete(`/api/documents/${removed}`);
  await app.put("/api/conversations/c1", { messages: [{ id: "m1", role: "user", content: "A needle in a chat" }] });
  const found: Record<string, unknown>[] = [];
  let cursor: string | null = null;
  do {
    const response = await app.get(`/api/search?q=needle${cursor === null ? "" : `&cursor=${cursor}`}`);
    expect(response.status).toBe(200);
    const page = await response.json();
    expect(page.items.length).toBeLessThanOrEqual(20);
    found.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null);
  expect(found[0]).toMatchObject({ conversation_id: "c1", message_id: "m1" });
  expect(found.slice(1).map(({ document_id, page }) => [document_id, page])).toEqual(
    Array.from({ length: 45 }, (_, n) => [id, n + 1]),
  );
  expect(found[1]).toEqual({
    document_id: id,
    page: 1,
    title: "long.pdf",
    snippet: "Needle number 1",
    created_at: expect.stringMatching(/Z$/),
  });
  const inChat = await (await app.get("/api/search?q=needle&conversation_id=c1")).json();
  expect(inChat.items).toHaveLength(1);
});

test("an export moves documents with their owners to another server", async () => {
  const pdf = writePdf(["First page", "Second page"]);
  const { id } = await addDocument(app, "report.pdf", pdf);
  await app.put("/api/personas/me", { name: "Me", documents: [{ id, use: "pages", pages: "2" }] });
  const file = new Uint8Array(await (await app.get("/api/export")).arrayBuffer());
  await using other = await openTestApp();
  for (let times = 0; times < 2; times++) {
    const job = await (await other.post("/api/import?kind=parlor", file, {
      headers: { "content-type": "application/octet-stream" },
    })).json();
    await expect.poll(async () => (await (await other.get(`/api/jobs/${job.id}`)).json()).state).toBe("done");
    expect(await waitForDocument(other, id)).toMatchObject({ name: "report.pdf", pages: 2, state: "ready" });
  }
  expect((await readText(other, id)).map(({ text }) => text)).toEqual(["First page", "Second page"]);
  expect(new Uint8Array(await (await other.get(`/api/documents/${id}/file`)).arrayBuffer())).toEqual(pdf);
  const { documents } = await (await other.get("/api/personas/me")).json();
  expect(documents).toEqual([{ id, use: "pages", pages: "2" }]);
});

test("a document whose stored properties can't be decrypted is listed as damaged and can be deleted", async () => {
  const good = await addDocument(app, "good.txt", "Fine");
  const { id } = await addDocument(app, "bad.txt", "Still there");
  const damage = () => {
    using db = openStoredDatabase(app.dataDir);
    db.prepare("UPDATE document_file SET sealed = zeroblob(80) WHERE id = ?").run(id);
    return Promise.resolve();
  };
  await app.restart(damage);
  const list = await (await app.get("/api/documents")).json();
  const damaged = { id, name: "Document", state: "failed", error: { code: "damaged" }, size_bytes: 11, pages: 0 };
  expect(list).toMatchObject([damaged, { id: good.id, state: "ready" }]);
  expect(await (await app.get(`/api/documents/${id}`)).json()).toMatchObject(damaged);
  expect(await codeOf(await app.get(`/api/documents/${id}/text`))).toEqual([422, "unprocessable"]);
  expect(await (await app.get(`/api/documents/${id}/file`)).text()).toBe("Still there");
  expect((await app.delete(`/api/documents/${id}`)).status).toBe(204);
  expect(await (await app.get("/api/documents")).json()).toMatchObject([{ id: good.id }]);
});

test.each(["characters", "personas"])("the ETag of %s changes with their documents", async (kind) => {
  const path = `/api/${kind}/x`;
  const name = kind === "personas" ? { name: "Ann" } : {
    card: { spec: "chara_card_v2", spec_version: "2.0", data: { name: "Ann" } },
  };
  const put = (body: object, tag: string) => app.put(path, { ...name, ...body }, { headers: { "if-match": tag } });
  const tagOf = async (response: Response) => {
    await response.body?.cancel();
    return response.headers.get("etag")!;
  };
  const { id } = await addDocument(app, "notes.txt", "Buy marmalade");
  const bare = await tagOf(await app.put(path, name));
  const answer = await put({ documents: [{ id }] }, bare);
  expect(answer.status).toBe(200);
  const used = await tagOf(answer);
  expect(used).not.toBe(bare);
  expect(await tagOf(await app.get(path))).toBe(used);
  expect((await app.get(path, { headers: { "if-none-match": used } })).status).toBe(304);
  expect((await app.get(path, { headers: { "if-none-match": bare } })).status).toBe(200);
  expect(await codeOf(await put({ documents: [] }, bare))).toEqual([412, "revision_mismatch"]);
  const pinned = await tagOf(await put({ documents: [{ id, use: "pages", pages: "1" }] }, used));
  expect(pinned).not.toBe(used);
  expect(await codeOf(await put({}, used))).toEqual([412, "revision_mismatch"]);
  expect((await put({}, `"other", ${pinned}`)).status).toBe(200);
  expect(await tagOf(await put({ documents: null }, pinned))).toBe(bare);
  expect((await app.delete(path, { headers: { "if-match": pinned } })).status).toBe(412);
  expect((await app.delete(path, { headers: { "if-match": bare } })).status).toBe(204);
});

test("says how a text was decoded, and reads it again in the encoding that is chosen", async () => {
  const text = "図書館は九時に開きます。";
  const document = await addDocument(app, "a.txt", encodeText(text, "euc-jp"));
  expect(document).toMatchObject({ state: "ready", encoding: "euc-jp" });
  expect(document.ledger).toEqual([{
    kind: "encoding",
    count: 1,
    reason: "The encoding of the text was guessed or chosen",
    examples: ["euc-jp"],
  }]);
  const path = `/api/documents/${document.id}/read`;
  const response = await app.post(path, { encoding: "windows-1252" });
  expect([response.status, (await response.json()).kind]).toEqual([202, "document"]);
  expect(await waitForDocument(app, document.id)).toMatchObject({ state: "ready", encoding: "windows-1252" });
  expect((await readText(app, document.id)).map((page) => page.text).join()).toContain("¿Þ");
  expect((await app.post(path, {})).status).toBe(202);
  expect(await waitForDocument(app, document.id)).toMatchObject({ state: "ready", encoding: "euc-jp", pages: 1 });
  await app.restart();
  expect(await readText(app, document.id)).toEqual([{ n: 1, text }]);
  expect(await codeOf(await app.post(path, { encoding: "utf-7" }))).toEqual([400, "invalid_request"]);
  expect(await codeOf(await app.post(`/api/documents/${document.id.replace(/.$/, "x")}/read`, {}))).toEqual([
    404,
    "not_found",
  ]);
});

test("a document can be read again at the moment when its text is there", async () => {
  const { events } = app.services;
  const { documents } = await app.services.documents();
  let again: Promise<unknown> | undefined;
  const stop = events.subscribe(({ kind, id }) => {
    if (kind === "document" && documents.get(id).state === "ready") again ??= documents.readAgain(id);
  });
  const { id } = await addDocument(app, "a.txt", "Marmalade is orange.");
  await expect.poll(() => again !== undefined).toBe(true);
  await again;
  expect(await waitForDocument(app, id)).toMatchObject({ state: "ready", pages: 1 });
  stop();
});

test("a guess uses the languages of the browser", async () => {
  const form = new FormData();
  form.append("file", new File([encodeText("café crème", "windows-1252")], "a.txt"));
  const headers = { "Accept-Language": "fr-CH, fr;q=0.9, *;q=0.5" };
  const response = await app.post("/api/documents", form, { headers });
  const { ledger } = await waitForDocument(app, (await response.json()).id);
  expect(ledger.map(({ kind }) => kind)).toEqual(["encoding"]);
});

test("the old text stays if the file can't be read again, and a search finds only the newest", async () => {
  const document = await addDocument(app, "a.txt", "Marmalade is orange.");
  const { documents } = await app.services.documents();
  await Deno.rename(`${app.dataDir}/documents/${document.id}`, `${app.dataDir}/documents/gone`);
  const job = await documents.readAgain(document.id);
  await app.services.jobs.ended(job.id);
  expect(await waitForDocument(app, document.id)).toMatchObject({ state: "ready", pages: 1 });
  expect(await readText(app, document.id)).toEqual([{ n: 1, text: "Marmalade is orange." }]);
  await Deno.rename(`${app.dataDir}/documents/gone`, `${app.dataDir}/documents/${document.id}`);
  await app.services.jobs.ended((await documents.readAgain(document.id)).id);
  const found = await (await app.get("/api/search?q=marmalade")).json();
  expect(JSON.stringify(found).match(/Marmalade/g)).toHaveLength(1);
});

test("renames a document, with If-Match only if nothing else changed it", async () => {
  const { id } = await addDocument(app, "map.md", "# Map");
  const etag = (await app.get(`/api/documents/${id}`)).headers.get("etag")!;
  const rename = (name: string, headers: Record<string, string> = {}) =>
    app.patch(`/api/documents/${id}`, { name }, { headers });
  const renamed = await rename("  The\n old mill ", { "if-match": etag });
  expect([renamed.status, (await renamed.json()).name]).toEqual([200, "The old mill"]);
  expect(await codeOf(await rename("Other", { "if-match": etag }))).toEqual([412, "revision_mismatch"]);
  for (const name of ["", "   ", "\u0000"]) expect(await codeOf(await rename(name))).toEqual([400, "invalid_request"]);
  await app.restart();
  expect(await (await app.get(`/api/documents/${id}`)).json()).toMatchObject({ name: "The old mill", state: "ready" });
  await app.delete(`/api/documents/${id}`);
  expect((await rename("Gone")).status).toBe(409);
});
