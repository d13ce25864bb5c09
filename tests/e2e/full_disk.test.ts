import { expect, test } from "vitest";
import { startChildServer } from "../helpers/child_server.ts";

/** A file system of a few megabytes; only root on Linux can mount one. */
async function mountSmall(path: string): Promise<boolean> {
  if (Deno.build.os !== "linux" || Deno.uid() !== 0) return false;
  const options = { args: ["-t", "tmpfs", "-o", "size=6m,mode=0700", "tmpfs", path] };
  return (await new Deno.Command("mount", options).output()).success;
}

test("D03 on a full disk a save is 507, what was there stays, and the next save works once there is room", async (context) => {
  const dataDir = await Deno.makeTempDir();
  if (!await mountSmall(dataDir)) {
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
