import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { runChildGroup } from "../../../services/process/process_group.ts";
import { happened, standingClock } from "../../helpers/fakes/standing_clock.ts";
import { isGone } from "../../helpers/processes/processes.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

test("kills a program and its children at the time limit", { tags: ["X05"] }, async () => {
  await using folder = await tempFolder();
  using clock = standingClock(); // the program may start late
  const script = `trap '' TERM INT; sleep 300 & echo $! >children; wait; sleep 300`;
  const ending = runChildGroup({
    program: "sh",
    args: ["-c", script],
    folder: folder.path,
    env: { PATH: Deno.env.get("PATH")! },
    timeoutMs: 2_000,
    maxOutputBytes: 1_000,
    maxFolderBytes: 1_000_000,
    signal: new AbortController().signal,
  }).then(() => undefined, (error) => error);
  await happened(() => existsSync(folder.file("children")) && Deno.readTextFileSync(folder.file("children")) !== "");
  const failure = await clock.until(ending, 100);
  expect(failure).toMatchObject({ code: "unprocessable", message: `Stopped "sh": it wasn't finished after 2000 ms` });
  const child = Number(await Deno.readTextFile(folder.file("children")));
  expect(child).toBeGreaterThan(0);
  await expect.poll(() => isGone(child)).toBe(true);
});
