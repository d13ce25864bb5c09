import { expect, test } from "vitest";
import { estimateMemoryRate, measureMachine, recommendModels } from "../../../services/models/models.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

const machine = (memoryGb: number, freeDiskGb: number, memoryRate = 30e9) => ({
  memoryBytes: memoryGb * 1e9,
  freeDiskBytes: freeDiskGb * 1e9,
  memoryRate,
});
const offer = (...values: Parameters<typeof machine>) =>
  recommendModels(machine(...values)).map(({ level, name }) => `${level}: ${name}`);

test.each([
  [16, 100, ["fast: Gemma 3 1B", "balanced: Gemma 3 4B", "best: Gemma 3 12B"]],
  [8.5, 100, ["fast: Gemma 3 1B", "balanced: Gemma 3 4B", "best: Llama 3.1 8B"]],
  [4, 100, ["fast: Gemma 3 1B", "best: Llama 3.2 3B"]],
  [2, 100, []],
  [64, 3, ["fast: Gemma 3 1B"]],
  [64, 1, []],
])("offers what fits %d GB of memory and %d GB of disk", (memoryGb, diskGb, names) => {
  expect(offer(memoryGb, diskGb)).toEqual(names);
});

test("every offer fits, and a slow machine isn't offered models that crawl", () => {
  for (const { memoryBytes, sizeBytes } of recommendModels(machine(8, 10))) {
    expect(memoryBytes).toBeLessThan(8e9);
    expect(sizeBytes).toBeLessThan(9e9);
  }
  for (const { tokensPerSecond } of recommendModels(machine(64, 500, 15e9))) {
    expect(tokensPerSecond).toBeGreaterThanOrEqual(3);
  }
  expect(offer(64, 500, 1e9)).toEqual(["fast: Gemma 3 1B"]);
});

test("measures a machine, even for a models folder that doesn't exist yet", async () => {
  await using folder = await tempFolder();
  const measured = await measureMachine(folder.file("not/yet/there"));
  expect(measured.memoryBytes).toBeGreaterThan(100e6);
  expect(measured.freeDiskBytes).toBeGreaterThan(0);
  expect(estimateMemoryRate("darwin", "aarch64", 8)).toBeGreaterThan(estimateMemoryRate("linux", "x86_64", 64));
});
