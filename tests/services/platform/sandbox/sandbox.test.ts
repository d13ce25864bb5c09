import { afterEach, expect, test } from "vitest";
import {
  Sandbox,
  SandboxFault,
  type SandboxKind,
  type SandboxTimes,
} from "../../../../services/platform/sandbox/sandbox.ts";
import { listDescendants, processExists } from "../../../helpers/processes/proc.ts";

const MIB = 1024 * 1024;
const KIND: SandboxKind = {
  url: new URL("../../../helpers/processes/sandbox_test_child.ts", import.meta.url),
  maxChildren: 2,
  maxCpuMs: 60_000,
  maxResidentBytes: 256 * MIB,
  maxMessageBytes: 4 * MIB,
  maxOutputBytes: 16 * MIB,
};

const opened: Sandbox[] = [];
const before = listDescendants(Deno.pid);

function open(times: Partial<SandboxTimes> = {}): Sandbox {
  const sandbox = new Sandbox(times);
  opened.push(sandbox);
  return sandbox;
}

/** The processes of the sandboxes of this test. */
function listChildren(): number[] {
  return listDescendants(Deno.pid, before);
}

async function echo(sandbox: Sandbox, arg = ""): Promise<{ pid: number; arg: string }> {
  return (await sandbox.run(KIND, { value: { what: "echo", arg } })).value as { pid: number; arg: string };
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((sandbox) => sandbox.close()));
  expect(listChildren()).toEqual([]);
});

test("returns the result of a job with its bytes, and keeps the child for the next one", async () => {
  const sandbox = open();
  const bytes = [crypto.getRandomValues(new Uint8Array(60_000)), new Uint8Array(0), new Uint8Array(200_000).fill(7)];
  const first = await sandbox.run(KIND, { value: { what: "echo", arg: "ünï\ud800" }, bytes });
  expect(first.bytes).toEqual(bytes);
  const { pid, arg } = first.value as { pid: number; arg: string };
  expect(arg).toBe("ünï\ud800");
  expect(await echo(sandbox)).toEqual({ pid, arg: "" });
});

test("a prepared child serves the first job", async () => {
  const sandbox = open();
  await Promise.all([sandbox.prepare(KIND), sandbox.prepare(KIND)]);
  expect(listChildren()).not.toEqual([]);
  const { pid } = await echo(sandbox);
  await sandbox.prepare(KIND);
  // A shell, and the child.
  expect(listChildren()).toHaveLength(2);
  expect(listChildren()).toContain(pid);
  await sandbox.close();
  await sandbox.prepare(KIND);
  expect(listChildren()).toEqual([]);
});

test("a child has no permission when it reads the first byte", { tags: ["J03"] }, async () => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/module.ts`, "");
  const { value } = await open().run({ ...KIND, readsPackages: true }, {
    value: { what: "attempts", arg: folder },
  });
  expect(value).toEqual([]);
  expect(await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).toEqual(["module.ts"]);
  await Deno.remove(folder, { recursive: true });
});

const EXCESSES = [
  ["spin", "time", "it took longer than 1 s"],
  ["allocate", "memory", "it needs more than 256 MiB of memory"],
  ["flood", "output", "its result is too large or isn't valid"],
  ["large", "output", "its result is too large or isn't valid"],
  ["noise", "output", "its result is too large or isn't valid"],
  ["exit", "crash", "the process that read it ended: the last words"],
] as const;

test.each(EXCESSES)(
  "a job that does %s ends as %s, and no process of it is left",
  { tags: ["J01"] },
  async (what, reason, message) => {
    const sandbox = open();
    const { pid } = await echo(sandbox);
    const job = {
      value: { what, arg: String(5 * MIB) },
      functions: { take: () => {} },
      ...what === "spin" && { maxCpuMs: 500 },
    };
    const error = await sandbox.run(KIND, job).catch((error) => error);
    expect(processExists(pid)).toBe(false);
    expect(listChildren()).toEqual([]);
    expect(error).toBeInstanceOf(SandboxFault);
    expect([error.reason, error.message]).toEqual([reason, message]);
    expect((await echo(sandbox)).pid).not.toBe(pid);
  },
);

test("a job that fails leaves the child to the next job, which hears nothing of it", async () => {
  const sandbox = open();
  const { pid } = await echo(sandbox);
  await expect(sandbox.run(KIND, { value: { what: "throw" } })).rejects.toThrow("the file is odd");
  await expect(sandbox.run(KIND, { value: { what: "late" } })).rejects.toThrow("too early");
  const heard: unknown[] = [];
  const job = {
    value: { what: "call", arg: "" },
    functions: { take: (value: unknown) => void heard.push(value), double },
  };
  for (let n = 0; n < 20; n++) await sandbox.run(KIND, job);
  expect(heard).toEqual([]);
  expect((await echo(sandbox)).pid).toBe(pid);
});

const double = async (value: unknown, bytes: Uint8Array[]) => {
  await new Promise((resolve) => setTimeout(resolve));
  return { value: `${value}${value}`, bytes: [...bytes, ...bytes] };
};

test("a job calls functions of Parlor; an error there ends the job and its child", async () => {
  const sandbox = open();
  const bytes = [new Uint8Array([1, 2])];
  const answer = await sandbox.run(KIND, { value: { what: "call", arg: "ab" }, bytes, functions: { double } });
  expect(answer).toEqual({ value: "abab", bytes: [...bytes, ...bytes] });
  const failing = () => {
    throw new Error("the disk is full");
  };
  const job = { value: { what: "call", arg: "ab" }, functions: { double: failing } };
  await expect(sandbox.run(KIND, job)).rejects.toThrow("the disk is full");
  expect(listChildren()).toEqual([]);
  // Functions of objects aren't offered.
  await expect(sandbox.run(KIND, { value: { what: "call" }, functions: {} })).rejects.toThrow("isn't valid");
});

test("a job ends with its signal, running or waiting", async () => {
  const sandbox = open();
  const kind = { ...KIND, maxChildren: 1 };
  const [running, waiting] = [new AbortController(), new AbortController()];
  const started = Promise.withResolvers<void>();
  const functions = { double: () => new Promise<void>(() => started.resolve()) };
  const first = sandbox.run(kind, { value: { what: "call" }, functions, signal: running.signal });
  const second = sandbox.run(kind, { value: { what: "echo" }, signal: waiting.signal });
  await started.promise;
  waiting.abort(new Error("not needed"));
  await expect(second).rejects.toThrow("not needed");
  running.abort(new Error("stopped"));
  await expect(first).rejects.toThrow("stopped");
  expect(listChildren()).toEqual([]);
});

test("as many children as allowed run at once, and all jobs are done", { tags: ["J02"] }, async () => {
  const sandbox = open();
  const results = await Promise.all(Array.from({ length: 20 }, (_, n) => echo(sandbox, String(n))));
  expect(results.map(({ arg }) => arg)).toEqual(Array.from({ length: 20 }, (_, n) => String(n)));
  expect(new Set(results.map(({ pid }) => pid)).size).toBeLessThanOrEqual(KIND.maxChildren);
});

test("a child without work ends after a while", async () => {
  const sandbox = open({ idleMs: 50 });
  const { pid } = await echo(sandbox);
  await expect.poll(() => processExists(pid)).toBe(false);
  await expect.poll(listChildren).toEqual([]);
});

test("a child that holds much memory after a job is replaced", async () => {
  const sandbox = open({ watchMs: 5 });
  const { pid } = await echo(sandbox);
  const functions = { measured: async () => void await new Promise((resolve) => setTimeout(resolve, 100)) };
  const hold = (sizeBytes: number) => sandbox.run(KIND, { value: { what: "hold", arg: String(sizeBytes) }, functions });
  await hold(150 * MIB);
  // On a busy machine, it may be measured only during a later job.
  await expect.poll(async () => {
    await hold(0);
    return (await echo(sandbox)).pid;
  }).not.toBe(pid);
});

test("children that work end with a Parlor that is killed", { tags: ["J04"] }, async () => {
  const parent = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "-A", new URL("../../../helpers/processes/sandbox_parent.ts", import.meta.url).href],
    stdout: "piped",
  }).spawn();
  const reader = parent.stdout.getReader();
  const pid = Number(new TextDecoder().decode((await reader.read()).value));
  const descendants = listDescendants(parent.pid);
  expect(descendants).toContain(pid);
  parent.kill("SIGKILL");
  await parent.status;
  await reader.cancel();
  await expect.poll(() => descendants.filter(processExists)).toEqual([]);
});

test("closing ends running and waiting jobs", async () => {
  const sandbox = open();
  const jobs = Array.from({ length: 5 }, () => sandbox.run(KIND, { value: { what: "sleep" } }));
  const ended = Promise.allSettled(jobs);
  await sandbox.close();
  for (const each of await ended) expect(each).toMatchObject({ status: "rejected", reason: { code: "not_available" } });
  expect(listChildren()).toEqual([]);
  await expect(sandbox.run(KIND)).rejects.toMatchObject({ code: "not_available" });
});

test("a pattern that backtracks without end is matched in linear time", async () => {
  const sandbox = open();
  expect((await sandbox.run(KIND, { value: { what: "match", arg: "(a+)+$" } })).value).toBe(false);
});
