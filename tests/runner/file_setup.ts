/**
 * Runs around each test file: restores what files share because they run in one process, counts the processor time, and fails
 * a file that leaves a process, a listening port or a temporary file.
 */
import { afterAll, expect, vi } from "vitest";
import { readdirSync } from "node:fs";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { slowDownWork } from "../helpers/network/slow_answers.ts";
import {
  countProcessorSeconds,
  findDescendants,
  findVariable,
  killProcess,
  LANE_VARIABLE,
  listListeningPorts,
  listProcesses,
  readCommand,
} from "./running_processes.ts";

/** What is being closed may take this long on a busy machine. */
const CLOSING_MS = 10_000;

/** A browser that is told to close may take this long. */
const LAST_MS = 2_000;

/** Files of the browser, its driver and its sound, which live as long as the lane. */
const LANE_FILES = /^(playwright|\.?org\.chromium|\.?com\.google|pulse-)/i;

/** Folder for temporary files of the run, made by tests/run.ts. Its name is short: paths of sockets end after 107 bytes. */
const runFolder = Deno.env.get("TEST_RUN_FOLDER");
const laneFolder = `${runFolder}/${Deno.pid}`;
if (runFolder !== undefined && !Deno.env.get("TMPDIR")?.startsWith(runFolder)) {
  Deno.mkdirSync(laneFolder);
  Deno.env.set("TMPDIR", laneFolder);
  // Who handles SIGTERM, as the browser's driver does, goes on if a test has left something that is waited for. Vitest's
  // SIGKILL never comes: the runtime sends one signal to a child only.
  process.once("SIGTERM", () => void setTimeout(() => process.exit(143), LAST_MS));
}
const environment = Deno.env.toObject();
// Names the file in the environment of all that it starts.
Deno.env.set("TEST_FILE", expect.getState().testPath ?? "");
const ports = listListeningPorts();
const files = listTemporaryFiles();
const processes = new Set(findChildren().map(({ pid }) => pid));
const processorSeconds = countProcessorSeconds(Deno.pid);
await slowDownWork();

// Hooks of the file itself run before.
// deno-lint-ignore no-empty-pattern -- vitest requires a pattern here
afterAll(async ({}, file) => {
  vi.useRealTimers();
  restoreEnvironment();
  const until = performance.now() + CLOSING_MS;
  while (findLeaks().length > 0 && performance.now() < until) await delay(20);
  Object.assign(file.meta, { processorSeconds: countProcessorSeconds(Deno.pid) - processorSeconds });
  const leaks = findLeaks();
  // The next file must not meet them.
  for (const { pid } of findChildren()) if (!processes.has(pid)) killProcess(pid);
  for (const name of listTemporaryFiles()) {
    if (!files.includes(name)) Deno.removeSync(`${Deno.env.get("TMPDIR")}/${name}`, { recursive: true });
  }
  if (leaks.length > 0) throw new Error(`Left by this file: ${leaks.join("; ")}`);
});

function findLeaks(): string[] {
  return [
    ...findChildren().filter(({ pid }) => !processes.has(pid))
      .map(({ pid }) => `process ${pid} (${readCommand(pid)})`),
    ...listListeningPorts().filter((port) => !ports.includes(port)).map((port) => `listening port ${port}`),
    ...listTemporaryFiles().filter((name) => !files.includes(name)).map((name) => `temporary file ${name}`),
  ];
}

function findChildren() {
  return findDescendants(listProcesses(), Deno.pid, (pid) => findVariable(pid, LANE_VARIABLE) !== undefined);
}

/** Without a run folder, other programs use the same temporary folder. */
function listTemporaryFiles(): string[] {
  if (runFolder === undefined) return [];
  return readdirSync(Deno.env.get("TMPDIR")!).filter((name) => !LANE_FILES.test(name));
}

function restoreEnvironment(): void {
  for (const name of Object.keys(Deno.env.toObject())) if (!(name in environment)) Deno.env.delete(name);
  for (const [name, value] of Object.entries(environment)) {
    if (Deno.env.get(name) !== value) Deno.env.set(name, value);
  }
}
