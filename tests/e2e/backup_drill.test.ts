/** A backup of a running server under load, restored on another machine. */
import { expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { runParlor } from "../helpers/processes/parlor_command.ts";
import { makeRgbaPng } from "../helpers/files/png_files.ts";
import { RestlessWriter } from "../helpers/processes/restless_writer.ts";
import { filesWithText, tempFolder } from "../helpers/files/storage_folder.ts";

/** Servers and commands start one after another; on a busy machine each takes up to half a minute. */
const SEVERAL_STARTS_MS = 10 * 60_000;
const PASSPHRASE = { PARLOR_BACKUP_PASSPHRASE: "a horse and a battery" };

/** The server with writers that stop on request. */
function untilStopped(server: ChildServer): { server: ChildServer; stop(): void } {
  let isStopped = false;
  const request: ChildServer["request"] = (...args) =>
    isStopped ? Promise.reject(new Error("stopped")) : server.request(...args);
  return { server: Object.assign(Object.create(server), { request }), stop: () => void (isStopped = true) };
}

test(
  "a backup taken under load contains every acknowledged write, and a clean machine opens it with only its passphrase",
  { tags: ["K07"], timeout: SEVERAL_STARTS_MS },
  async () => {
    await using here = await tempFolder();
    await using there = await tempFolder();
    const file = here.file("parlor.backup");
    const picture = makeRgbaPng(40, 30, (x, y) => [x, y, 9, 255]);
    const settled = Array.from({ length: 4 }, (_, n) => new RestlessWriter(n));
    const restless = Array.from({ length: 4 }, (_, n) => new RestlessWriter(100 + n));
    {
      await using server = await startChildServer({ dataDir: here.file("data") });
      const writing = untilStopped(server);
      await server.json("PUT", "/api/personas/p1", { name: "Ann" });
      const headers = { "Content-Type": "image/png" };
      await fetch(`${server.url}/api/attachments/a.png`, { method: "PUT", body: picture, headers });
      const connection = {
        id: "c1",
        kind: "openai",
        base_url: "http://127.0.0.1:9",
        model: "m",
        api_key: "sk-drill-4711",
      };
      await server.json("PUT", "/api/connections", connection);
      const first = untilStopped(server);
      const both = [settled.map((writer) => writer.write(first.server)), restless.map((w) => w.write(writing.server))];
      await expect.poll(() => Math.min(...settled.map(({ acknowledged }) => acknowledged)), { timeout: 60_000 })
        .toBeGreaterThan(10);
      // What was acknowledged before the command started must be in the backup; the other writers go on during it.
      first.stop();
      await Promise.all(both[0]!);
      const before = Math.min(...restless.map(({ acknowledged }) => acknowledged));
      const made = await runParlor(["backup", file, "--data-dir", here.file("data")], { env: PASSPHRASE });
      expect(made).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("verified the backup") });
      expect(Math.min(...restless.map(({ acknowledged }) => acknowledged))).toBeGreaterThan(before);
      writing.stop();
      await Promise.all(both[1]!);
    }
    expect((await Deno.stat(file)).mode! & 0o777).toBe(0o600);
    const again = await runParlor(["backup", file, "--data-dir", here.file("data")], { env: PASSPHRASE });
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("--replace") });

    const restored = await runParlor(["restore", file, "--data-dir", there.file("data")], { env: PASSPHRASE });
    expect(restored).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringContaining("storage key was restored, too"),
    });
    await using server = await startChildServer({ dataDir: there.file("data") });
    for (const writer of settled) await writer.check(server);
    const conversations = await server.json<{ id: string; error?: unknown }[]>("GET", "/api/conversations");
    expect(conversations.map(({ error }) => error)).toEqual(conversations.map(() => undefined));
    expect(conversations.length).toBeGreaterThan(0);
    expect(await server.json("GET", "/api/personas")).toMatchObject([{ id: "p1", name: "Ann" }]);
    expect(await server.json("GET", "/api/connections")).toContainEqual(
      expect.objectContaining({ id: "c1", has_key: true }),
    );
    const shown = await server.request("GET", "/api/attachments/a.png");
    expect(new Uint8Array(await shown.arrayBuffer())).toEqual(picture);
  },
);

test(
  "a backup can't be read or restored without its key, if changed, or over existing data",
  { tags: ["K01", "K07"], timeout: SEVERAL_STARTS_MS },
  async () => {
    await using here = await tempFolder();
    const [data, file, other] = [here.file("data"), here.file("parlor.backup"), here.file("other")];
    {
      await using server = await startChildServer({ dataDir: data });
      const messages = [{ id: "m1", role: "user", content: "a word like quillfeather" }];
      await server.json("PUT", "/api/conversations/c1", { title: "Quillfeather", messages });
      await server.json("PUT", "/api/personas/p1", { name: "Quillfeather" });
    }
    const made = await runParlor(["backup", file, "--data-dir", data], { env: PASSPHRASE });
    expect(made).toMatchObject({ code: 0 });
    await Deno.mkdir(here.file("sealed"));
    await Deno.rename(file, here.file("sealed/one"));
    for (const word of ["quillfeather", "Quillfeather", PASSPHRASE.PARLOR_BACKUP_PASSPHRASE]) {
      expect(await filesWithText(here.file("sealed"), word)).toEqual([]);
    }

    const restore = (from: string, to: string, env: Record<string, string> = PASSPHRASE, args: string[] = []) =>
      runParlor(["restore", from, "--data-dir", to, ...args], { env });
    const refused = async (end: ReturnType<typeof restore>, sentence: RegExp) => {
      const { code, stderr } = await end;
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(sentence) });
    };
    await refused(
      restore(here.file("sealed/one"), other, { PARLOR_BACKUP_PASSPHRASE: "another one" }),
      /Wrong passphrase/,
    );
    await refused(restore(here.file("sealed/one"), other, {}), /No passphrase\. Use/);
    await refused(restore(here.file("sealed/one"), data), /it has data .*--replace/);
    const bytes = await Deno.readFile(here.file("sealed/one"));
    await Deno.writeFile(here.file("sealed/cut"), bytes.subarray(0, bytes.length - 40));
    await refused(restore(here.file("sealed/cut"), other), /Can't decrypt|truncated|incomplete/);
    const flipped = bytes.slice();
    flipped[bytes.length - 9000]! ^= 1;
    await Deno.writeFile(here.file("sealed/flipped"), flipped);
    await refused(restore(here.file("sealed/flipped"), other), /was modified/);
    await refused(restore(`${data}/app.db`, other), /isn't a Parlor backup/);
    {
      await using running = await startChildServer({ dataDir: data });
      await refused(restore(here.file("sealed/one"), data, PASSPHRASE, ["--replace"]), /another Parlor process/);
      await running.json("DELETE", "/api/conversations/c1");
    }

    const replaced = await restore(here.file("sealed/one"), data, PASSPHRASE, ["--replace"]);
    expect(replaced).toMatchObject({ code: 0, stdout: expect.stringMatching(/replaced-/) });
    const countFiles = ({ stdout }: { stdout: string }) => /\((\d+) files/.exec(stdout)?.[1];
    expect(countFiles(replaced)).toBe(countFiles(made));
    await using server = await startChildServer({ dataDir: data });
    expect(await server.json("GET", "/api/conversations/c1")).toMatchObject({ title: "Quillfeather" });
  },
);

test(
  "a backup encrypted with the storage key opens after that key is restored, and says so without it",
  { tags: ["K07"], timeout: SEVERAL_STARTS_MS },
  async () => {
    await using here = await tempFolder();
    const [data, file, other] = [here.file("data"), here.file("parlor.backup"), here.file("other")];
    {
      await using server = await startChildServer({ dataDir: data });
      await server.json("PUT", "/api/personas/p1", { name: "Ann" });
    }
    const made = await runParlor(["backup", file, "--storage-key-only", "--data-dir", data]);
    expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining("store the key somewhere else, too") });
    expect(made.stdout, "names what is in it").toMatch(/^Backed up .*\b1 persona \(\d+ files, /);
    const without = await runParlor(["restore", file, "--data-dir", other]);
    expect(without).toMatchObject({ code: 1, stderr: expect.stringContaining("parlor key import") });
    await Deno.copyFile(`${data}/storage-key`, `${other}/storage-key`);
    const restored = await runParlor(["restore", file, "--data-dir", other]);
    expect(restored).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(/^Restored .*\b1 persona \(/),
    });
    await using server = await startChildServer({ dataDir: other });
    expect(await server.json("GET", "/api/personas")).toMatchObject([{ id: "p1", name: "Ann" }]);
  },
);
