import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type DownloadDetail, DownloadProgress } from "../../../../services/models/downloads/download_progress.ts";

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

test("the rate is what the line brought over the last seconds", () => {
  const { progress, rate, after } = openProgress([100 * MB]);
  progress.received(0, 0);
  for (let n = 1; n <= 4; n++) {
    after(500);
    progress.received(0, n * MB);
  }
  expect(rate()).toBe(2 * MB);
});

test("reading again what a broken download left is no measure of the line, however long it takes", () => {
  const { progress, rate, after } = openProgress([1000 * MB]);
  for (let n = 0; n <= 8; n++) {
    progress.found(0, n * 100 * MB);
    expect(rate()).toBe(0);
    after(250);
  }
  progress.received(0, 801 * MB);
  after(1000);
  progress.received(0, 802 * MB);
  expect(rate()).toBeLessThan(3 * MB);
  expect(rate()).toBeGreaterThan(0);
});

test("a shard that is there already counts as done and not as speed", () => {
  const { progress, rate, after } = openProgress([500 * MB, 500 * MB]);
  progress.received(1, 0);
  after(1000);
  progress.received(1, MB);
  after(1000);
  progress.found(0, 500 * MB);
  expect(rate()).toBe(0);
});
