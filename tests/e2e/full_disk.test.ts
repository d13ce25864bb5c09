import { statfsSync } from "node:fs";
import { expect, test } from "vitest";
import { startChildServer } from "../helpers/app/child_server.ts";
import { openFakeHub } from "../helpers/fakes/fake_hub.ts";
import { ggufFile } from "../helpers/files/gguf_file.ts";
import { fill } from "../helpers/processes/storage_small_disk.ts";

/** A file system of some megabytes; only root on Linux can mount one. */
async function mountSmall(path: string, megabytes: number): Promise<boolean> {
  if (Deno.build.os !== "linux" || Deno.uid() !== 0) return false;
  const options = { args: ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0700`, "tmpfs", path] };
  return (await new Deno.Command("mount", options).output()).success;
}

test("on a full disk a save gets 507, existing data stays, and the next save works once there is space", {
  tags: ["D03"],
}, async (context) => {
  const dataDir = await Deno.makeTempDir();
  if (!await mountSmall(dataDir, 6)) {
    console.warn("SKIPPED D03 over HTTP: only root on Linux can mount a small file system");
    return context.skip();
  }
  try {
    await using server = await startChildServer({ dataDir });
    const small = { messages: [{ id: "m1", role: "user", content: "kept" }] };
    await server.json("PUT", "/api/conversations/c1", small);
    const large = { messages: [{ id: "m1", role: "user", content: "x".repeat(8_000_000) }] };
    const refused = await server.request("PUT", "/api/conversations/c1", large);
    expect(refused.status).toBe(507);
    expect((await refused.json()).error).toMatchObject({ code: "storage_full" });
    expect(await server.json("GET", "/api/conversations/c1")).toMatchObject(small);
    expect((await server.request("GET", "/healthz")).status).toBe(204);
    await server.json("PUT", "/api/conversations/c1", {
      messages: [{ id: "m1", role: "user", content: "works again" }],
    });
    expect(await server.json("GET", "/api/conversations/c1")).toMatchObject({ messages: [{ content: "works again" }] });
  } finally {
    await new Deno.Command("umount", { args: [dataDir] }).output();
    await Deno.remove(dataDir);
  }
});

test(
  "a disk that fills up during a download fails only the job, and canceling frees the space",
  { tags: ["M05"], timeout: 180_000 },
  async (context) => {
    const dataDir = await Deno.makeTempDir();
    // A download only starts if 256 MiB stay free.
    if (!await mountSmall(dataDir, 300)) {
      console.warn("SKIPPED M05 on a full disk: only root on Linux can mount a small file system");
      return context.skip();
    }
    try {
      const model = ggufFile({ sizeBytes: 20_000_000 });
      await using hub = openFakeHub({ "owner/name": { files: { "big.gguf": model } } });
      const args = ["--hub-url", hub.url, "--guard-allow", "127.0.0.2/31"];
      await using server = await startChildServer({ dataDir, args });
      const newest = async () =>
        (await server.json<{ id: string; state: string; received_bytes: number }[]>("GET", "/api/models/downloads"))[
          0
        ]!;
      const freeBytes = () => statfsSync(dataDir).bavail * statfsSync(dataDir).bsize;
      const start = async () => {
        const held = Promise.withResolvers<void>();
        hub.faults.hold = { afterBytes: 5_000_000, until: held.promise };
        await server.json("POST", "/api/models/download", { repo: "owner/name", format: "gguf", file: "big.gguf" });
        return held.resolve;
      };
      await server.json("PUT", "/api/conversations/c1", { messages: [{ id: "m1", role: "user", content: "kept" }] });

      const goOn = await start();
      await expect.poll(newest).toMatchObject({ received_bytes: 5_000_000 });
      await fill(`${dataDir}/everything_else`);
      goOn();
      await expect.poll(newest).toMatchObject({
        state: "failed",
        error: { code: "storage_full" },
      });
      expect((await server.request("GET", "/healthz")).status).toBe(204);
      for (const path of ["/api/models/local", "/api/conversations", "/api/conversations/c1", "/api/connections"]) {
        expect((await server.request("GET", path)).status, path).toBe(200);
      }
      expect(await server.json("GET", "/api/models/local")).toEqual([]);
      const again = await server.request("POST", "/api/models/download", {
        repo: "owner/name",
        format: "gguf",
        file: "big.gguf",
      });
      expect([202, 507], "started and failed, or refused since it cannot be noted").toContain(again.status);
      await again.body?.cancel();

      // With space again, one that started would succeed.
      await expect.poll(newest).toMatchObject({ state: "failed" });
      await Deno.remove(`${dataDir}/everything_else`);
      const before = freeBytes();
      const leave = await start();
      await expect.poll(async () => (await newest()).received_bytes).toBeGreaterThan(5_000_000);
      await server.json("POST", `/api/models/downloads/${(await newest()).id}/cancel`);
      leave();
      await expect.poll(freeBytes).toBeGreaterThan(before + 4_000_000);
      expect(await server.json("GET", "/api/models/local")).toEqual([]);
      await server.json("PUT", "/api/conversations/c1", { messages: [{ id: "m1", role: "user", content: "works" }] });
    } finally {
      await new Deno.Command("umount", { args: [dataDir] }).output();
      await Deno.remove(dataDir);
    }
  },
);
