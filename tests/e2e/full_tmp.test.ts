/** A temporary folder without space: nothing that a person saves, imports or exports depends on it. */
import { zipSync } from "fflate";
import { expect, test } from "vitest";
import { until } from "../helpers/app/chat_client.ts";
import { ownEnvironment, startChildServer } from "../helpers/app/child_server.ts";
import { jsonFile } from "../helpers/app/imported.ts";
import { writePdf } from "../helpers/files/document_files.ts";
import { picture } from "../helpers/files/pictures.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";
import { fill, smallFileSystem } from "../helpers/processes/storage_small_disk.ts";

test(
  "with a full temporary folder, saves, images, documents, imports and exports work",
  { timeout: 180_000 },
  async (context) => {
    await using folder = await tempFolder();
    const full = folder.file("tmp");
    await using small = await smallFileSystem(full);
    if (small === undefined) {
      console.warn("SKIPPED a full temporary folder: only root on Linux can mount a small file system");
      return context.skip();
    }
    await fill(`${full}/filler`);
    await expect(Deno.writeFile(`${full}/more`, new Uint8Array(10_000))).rejects.toThrow(/space/i);
    const env = { ...ownEnvironment(), TMPDIR: full };
    await using server = await startChildServer({ dataDir: folder.file("data"), env });
    const messages = [{ id: "m1", role: "user", content: "x".repeat(2_000_000) }];
    await server.json("PUT", "/api/conversations/c1", { title: "Kept", messages });
    const image = await fetch(`${server.url}/api/attachments/boat.png`, {
      method: "PUT",
      headers: { "content-type": "image/png" },
      body: picture(5),
    });
    expect(image.ok).toBe(true);
    await image.body?.cancel();
    const form = new FormData();
    form.append("file", new Blob([writePdf(["The tide turns."])]), "tide.pdf");
    const document = await server.json<{ id: string }>("POST", "/api/documents", form);
    const read = () => server.json<{ state: string }>("GET", `/api/documents/${document.id}`);
    await until(async () => (await read()).state !== "extracting", "the document is read");
    expect((await read()).state).toBe("ready");
    const zip = zipSync({
      "parlor-export.json": jsonFile({ format: 3, version: "0.1.0" }),
      "conversations/p1.json": jsonFile({ title: "Imported", messages }),
    });
    const started = await fetch(`${server.url}/api/import?kind=parlor`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
      body: zip as Uint8Array<ArrayBuffer>,
    });
    const { id } = await started.json();
    const job = () => server.json<{ state: string }>("GET", `/api/jobs/${id}`);
    await until(async () => ["done", "failed", "cancelled"].includes((await job()).state), "the import ends");
    expect(await job()).toMatchObject({ state: "done" });
    const exported = await server.request("GET", "/api/export");
    expect([exported.status, (await exported.bytes()).length > 1_000]).toEqual([200, true]);
    await server.json("GET", "/api/findings");
    await server.kill("SIGTERM");
  },
);
