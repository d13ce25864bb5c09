import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type DownloadDetail, DownloadProgress } from "../../../../services/models/downloads/download_job.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const MB = 1_000_000;

function openProgress(sizes: number[]) {
  let detail: DownloadDetail | undefined;
  const files = sizes.map((sizeBytes, n) => ({ path: `${n}.gguf`, sizeBytes }));
  const progress = new DownloadProgress(
    { repo: "owner/name", format: "gguf", file: "0.gguf", revision: "1", files },
    { detail: (value) => void (detail = value as DownloadDetail), progress: () => {} },
  );
  return {
    progress,
    rate: () => detail!.bytesPerSecond,
    after(ms: number) {
      vi.advanceTimersByTime(ms);
    },
  };
}

test("the speed is the average of the last seconds", () => {
  const { progress, rate, after } = openProgress([100 * MB]);
  progress.setReceived(0, 0);
  for (let n = 1; n <= 4; n++) {
    after(500);
    progress.setReceived(0, n * MB);
  }
  expect(rate()).toBe(2 * MB);
});

test("hashing data of an earlier attempt doesn't count toward the speed", () => {
  const { progress, rate, after } = openProgress([1000 * MB]);
  for (let n = 0; n <= 8; n++) {
    progress.setFound(0, n * 100 * MB);
    expect(rate()).toBe(0);
    after(250);
  }
  progress.setReceived(0, 801 * MB);
  after(1000);
  progress.setReceived(0, 802 * MB);
  expect(rate()).toBeLessThan(3 * MB);
  expect(rate()).toBeGreaterThan(0);
});

test("an existing shard counts as done, but not toward the speed", () => {
  const { progress, rate, after } = openProgress([500 * MB, 500 * MB]);
  progress.setReceived(1, 0);
  after(1000);
  progress.setReceived(1, MB);
  after(1000);
  progress.setFound(0, 500 * MB);
  expect(rate()).toBe(0);
});

test("a defect in the Worker fails the download and is one line of the log", async () => {
  const child = new URL("../../../helpers/processes/download_defect_child.ts", import.meta.url).pathname;
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), { args: ["run", "-A", child] }).output();
  expect(new TextDecoder().decode(stdout)).toMatch(/^internal: Can't continue the download: its Worker failed \(/);
  const lines = new TextDecoder().decode(stderr).trim().split("\n").map((line) => JSON.parse(line));
  expect(lines).toEqual([
    expect.objectContaining({ level: "error", message: "Uncaught error in a Worker", worker: "download_worker" }),
  ]);
  expect(lines[0].error).toContain("parseCidr");
});
