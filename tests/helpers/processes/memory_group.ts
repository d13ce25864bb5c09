/** A control group of Linux with a memory limit, as a container has it. Needs root and a writable /sys/fs/cgroup. */
import { join } from "node:path";

/** A group. Disposing of it ends its processes. */
export interface MemoryGroup extends AsyncDisposable {
  /** A program that runs Deno inside the group. */
  readonly deno: string;
  /** The most memory that all its processes used at once, in bytes. */
  peakBytes(): Promise<number>;
  /** Number of processes that the kernel ended because of the limit. */
  countKilled(): Promise<number>;
}

/** The files of both versions of control groups. @see https://docs.kernel.org/admin-guide/cgroup-v2.html */
const VERSIONS = [
  {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    peak: "memory.max_usage_in_bytes",
    events: "memory.oom_control",
  },
  { root: "/sys/fs/cgroup", limit: "memory.max", peak: "memory.peak", events: "memory.events" },
];

/** Creates a group; `undefined` where this user or system can't. */
export async function openMemoryGroup(limitBytes: number): Promise<MemoryGroup | undefined> {
  for (const { root, limit, peak, events } of VERSIONS) {
    const folder = join(root, `parlor-test-${crypto.randomUUID()}`);
    try {
      await Deno.mkdir(folder);
    } catch {
      continue;
    }
    try {
      await Deno.writeTextFile(join(folder, limit), String(limitBytes));
    } catch {
      await Deno.remove(folder);
      continue;
    }
    const wrapper = await Deno.makeTempFile({ prefix: "parlor-test-deno-" });
    await Deno.writeTextFile(
      wrapper,
      `#!/bin/sh\necho $$ >"${folder}/cgroup.procs" && exec "${Deno.execPath()}" "$@"\n`,
    );
    await Deno.chmod(wrapper, 0o700);
    return {
      deno: wrapper,
      peakBytes: async () => Number(await Deno.readTextFile(join(folder, peak))),
      async countKilled() {
        return Number(/oom_kill (\d+)/.exec(await Deno.readTextFile(join(folder, events)))?.[1]);
      },
      async [Symbol.asyncDispose]() {
        const list = async () => (await Deno.readTextFile(join(folder, "cgroup.procs"))).split("\n").filter(Boolean);
        for (let pids = await list(); pids.length > 0; pids = await list()) {
          for (const pid of pids) {
            try {
              Deno.kill(Number(pid), "SIGKILL");
            } catch (error) {
              if (!(error instanceof Deno.errors.NotFound)) throw error; // It has ended.
            }
          }
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        await Deno.remove(folder);
        await Deno.remove(wrapper);
      },
    };
  }
  return undefined;
}
