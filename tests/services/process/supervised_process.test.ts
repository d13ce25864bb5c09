import { expect, test } from "vitest";
import { startWatched } from "../../../services/process/supervised_process.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { isGone } from "../../helpers/processes/processes.ts";

async function readPid(path: string): Promise<number> {
  await expect.poll(() => Deno.readTextFile(path).catch(() => "")).toMatch(/^\d+\n$/);
  return Number(await Deno.readTextFile(path));
}

test("stops everything that a script has started, even processes that ignore SIGTERM", async () => {
  await using folder = await tempFolder();
  const started = `sh -c 'trap "" TERM; echo $$ >${folder.file("stubborn")}; sleep 300; sleep 300' & sleep 300`;
  const running = startWatched("/bin/sh", { args: ["-c", started], env: {}, stopWithinMs: 500 });
  const stubborn = await readPid(folder.file("stubborn"));
  await running.stop();
  expect((await running.ended).signal).toBe("SIGTERM");
  await expect.poll(() => isGone(stubborn)).toBe(true);
});

test("a program has ended even if a child of it keeps running with its output open", async () => {
  await using folder = await tempFolder();
  const script = `echo first; sleep 300 & echo $! >${folder.file("child")}; echo last`;
  const running = startWatched("/bin/sh", { args: ["-c", script], env: {} });
  const child = await readPid(folder.file("child"));
  expect(await running.ended).toMatchObject({ success: true, code: 0 });
  expect(running.lines).toEqual(["first", "last"]);
  expect(await isGone(child)).toBe(false);
  Deno.kill(child, "SIGKILL");
});

test.skipIf(Deno.build.os === "windows")("a script and its children end when Parlor is killed", async () => {
  await using folder = await tempFolder();
  const module = new URL("../../../services/process/supervised_process.ts", import.meta.url);
  const script = `sleep 300 & echo $! >${folder.file("child")}; wait`;
  await Deno.writeTextFile(
    folder.file("main.ts"),
    `import { startWatched } from ${JSON.stringify(module.href)};
await startWatched("/bin/sh", { args: ["-c", ${JSON.stringify(script)}], env: {} }).ended;`,
  );
  const args = ["run", "--quiet", "-A", "--no-config", folder.file("main.ts")];
  const parlor = new Deno.Command(Deno.execPath(), { args, stdin: "null", stdout: "null" }).spawn();
  const child = await readPid(folder.file("child"));
  parlor.kill("SIGKILL");
  await parlor.status;
  await expect.poll(() => isGone(child)).toBe(true);
});
