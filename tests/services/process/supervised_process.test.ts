import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  readStartTime,
  startWatched,
  takeOverProcess,
  WatcherPipe,
} from "../../../services/process/supervised_process.ts";
import { type TempFolder, tempFolder } from "../../helpers/files/storage_folder.ts";
import { findProcesses, isGone } from "../../helpers/processes/processes.ts";

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
  const { child } = await killParlor(folder, "");
  await expect.poll(() => isGone(child)).toBe(true);
});

/** Runs a script with a child of its own in another process, and kills that. */
async function killParlor(folder: TempFolder, outlives: string): Promise<{ pid: number; child: number }> {
  const module = new URL("../../../services/process/supervised_process.ts", import.meta.url);
  const script = `sleep 300 & echo $! >${folder.file("child")}; echo $$ >${folder.file("pid")}; wait`;
  await Deno.writeTextFile(
    folder.file("main.ts"),
    `import { startWatched, WatcherPipe } from ${JSON.stringify(module.href)};
await startWatched("/bin/sh", { args: ["-c", ${JSON.stringify(script)}], env: {}, ${outlives} }).ended;`,
  );
  const args = ["run", "--quiet", "-A", "--no-config", folder.file("main.ts")];
  const parlor = new Deno.Command(Deno.execPath(), { args, stdin: "null", stdout: "null" }).spawn();
  const [child, pid] = [await readPid(folder.file("child")), await readPid(folder.file("pid"))];
  parlor.kill("SIGKILL");
  await parlor.status;
  return { pid, child };
}

describe.skipIf(Deno.build.os === "windows")("a program with a watcher pipe", () => {
  let folder: TempFolder;
  let path: string;

  beforeEach(async () => {
    folder = await tempFolder();
    path = folder.file("a.pipe");
  });
  afterEach(async () => {
    await folder[Symbol.asyncDispose]();
  });

  const leave = (waitSeconds: number) =>
    killParlor(
      folder,
      `outlives: { pipe: await WatcherPipe.create(${JSON.stringify(path)}), waitSeconds: ${waitSeconds} }`,
    );
  const isWaiting = () => Deno.lstat(path).then(() => true, () => false);

  test("ends with its children if no Parlor takes it over in time", async () => {
    const { pid, child } = await leave(1);
    await expect.poll(async () => [await isGone(pid), await isGone(child)], { timeout: 60_000 }).toEqual([true, true]);
    await expect.poll(isWaiting, { timeout: 60_000 }).toBe(false);
  });

  test("is taken over, left again, and stopped with its children by the Parlor after that", async () => {
    const { pid, child } = await leave(600);
    expect(Math.abs(await readStartTime(pid).then((atMs) => atMs! - Date.now()))).toBeLessThan(120_000);
    const second = await takeOverProcess(pid, await WatcherPipe.open(path));
    second.leave!();
    const third = await takeOverProcess(pid, await WatcherPipe.open(path));
    expect(await isGone(pid)).toBe(false);
    await third.stop();
    expect([await isGone(pid), await isWaiting()]).toEqual([true, false]);
    await expect.poll(() => isGone(child)).toBe(true);
  });

  test("ends when its pipe was removed, as by a Parlor that doesn't recognize it, or with the data folder", async () => {
    const { pid } = await leave(600);
    await Deno.remove(path);
    await expect.poll(() => isGone(pid), { timeout: 60_000 }).toBe(true);
  });

  test("ends when a service manager ends the whole group, even if it ignores the first signal", async () => {
    const script = `trap "" TERM; echo $$ >${folder.file("pid")}; while :; do sleep 300; done`;
    const pipe = (await WatcherPipe.create(path))!;
    const running = startWatched("/bin/sh", { args: ["-c", script], env: {}, outlives: { pipe, waitSeconds: 600 } });
    const pid = await readPid(folder.file("pid"));
    Deno.kill(-pid, "SIGTERM");
    expect(await running.ended).toMatchObject({ signal: "SIGKILL" });
    await expect.poll(isWaiting).toBe(false);
  });

  test("ends when the signal comes at any moment of its start, before or after its watcher's", async () => {
    const ends = Array.from({ length: 40 }, async (_, index) => {
      const pipe = (await WatcherPipe.create(folder.file(`${index}.pipe`)))!;
      const args = ["-c", `trap "" TERM; while :; do sleep 300; done`];
      const running = startWatched("/bin/sh", { args, env: {}, outlives: { pipe, waitSeconds: 600 } });
      const signalAtMs = performance.now() + index / 8;
      while (performance.now() < signalAtMs); // A timer would be too coarse
      Deno.kill(-running.pid, "SIGTERM");
      return (await running.ended).success;
    });
    expect(await Promise.all(ends)).toEqual(Array(40).fill(false));
  });

  test("ends without a trace of its watcher", async () => {
    const pipe = (await WatcherPipe.create(path))!;
    const running = startWatched("/bin/sh", { args: ["-c", "exit 3"], env: {}, outlives: { pipe, waitSeconds: 600 } });
    expect(await running.ended).toMatchObject({ code: 3 });
    await expect.poll(isWaiting).toBe(false);
    // It removes the pipe, and then it ends.
    await expect.poll(() => findProcesses(path)).toEqual([]);
  });
});
