/**
 * The child's side of the sandbox: gives up all permissions, then reads foreign bytes.
 *
 * A file that runs in the sandbox ends with `await serveSandbox(…)`, which does nothing in any other process. It's the
 * last statement, because whatever follows would only be evaluated after the last job.
 */
import { getErrorMessage } from "../../errors.ts";
import { encodeFrame, FrameReader, type SandboxMessage } from "./frames.ts";

/** The hidden command of a child; its argument is the name of the file. */
export const SANDBOX_COMMAND = "sandbox";

/** From Parlor to a child. */
export type ParentMessage =
  | { kind: "job"; job: number; value: unknown }
  /** The answer to a call. */
  | { kind: "reply"; id: number; value: unknown };

/** From a child to Parlor. */
export type ChildMessage =
  /** Loaded, and without permissions. */
  | { kind: "ready" }
  /** `id` is absent if no reply is expected. */
  | { kind: "call"; job: number; name: string; id?: number; value: unknown }
  | { kind: "done"; job: number; value: unknown }
  | { kind: "failed"; job: number; message: string };

/** What a job may ask of Parlor. */
export interface SandboxHost {
  /** Calls a function that Parlor offers to this job. If it throws, the job and its child end. */
  call(name: string, value?: unknown, bytes?: readonly Uint8Array[]): Promise<SandboxMessage>;
  /** As `call`, without waiting for a reply. */
  send(name: string, value?: unknown, bytes?: readonly Uint8Array[]): void;
}

/** The result of a job. */
export interface SandboxResult {
  value?: unknown;
  bytes?: readonly Uint8Array[];
}

/** What a child does. */
export interface SandboxService {
  /** Loads everything that a job may need. Nothing can be loaded later. */
  load?(): Promise<unknown>;
  /** Runs one job. What it throws fails that job. */
  run(value: unknown, bytes: Uint8Array<ArrayBuffer>[], host: SandboxHost): Promise<SandboxResult> | SandboxResult;
}

const PERMISSIONS = ["read", "write", "net", "env", "run", "sys", "ffi", "import"] as const;
/** Parlor is trusted: what it sends is only limited by memory. */
const MAX_FRAME_BYTES = 2 ** 31;
const PIECE_BYTES = 64 * 1024;

/** Runs the jobs of Parlor, if this process is the child with this name. */
export async function serveSandbox(name: string, service: SandboxService): Promise<void> {
  if (Deno.args[0] !== SANDBOX_COMMAND || Deno.args[1] !== name) return;
  // Packages write to the console, and standard output belongs to the messages.
  console.log =
    console.info =
    console.debug =
    console.warn =
      console.error;
  await service.load?.();
  dropPermissions();
  post({ kind: "ready" });
  await serveJobs(service);
}

/** @throws {Error} if a permission can't be dropped. */
function dropPermissions(): void {
  for (const name of PERMISSIONS) {
    const { state } = Deno.permissions.revokeSync({ name } as Deno.PermissionDescriptor);
    if (state === "granted") throw new Error(`Can't drop the permission "${name}"`);
  }
}

async function serveJobs(service: SandboxService): Promise<void> {
  const calls = new Map<number, PromiseWithResolvers<SandboxMessage>>();
  let lastId = 0;
  const createHost = (job: number): SandboxHost => ({
    call(name, value, bytes) {
      const id = ++lastId;
      const reply = Promise.withResolvers<SandboxMessage>();
      calls.set(id, reply);
      post({ kind: "call", job, name, id, value }, bytes);
      return reply.promise;
    },
    send: (name, value, bytes) => post({ kind: "call", job, name, value }, bytes),
  });
  const run = async (job: number, value: unknown, bytes: Uint8Array<ArrayBuffer>[]) => {
    try {
      const result = await service.run(value, bytes, createHost(job));
      post({ kind: "done", job, value: result.value }, result.bytes);
    } catch (error) {
      post({ kind: "failed", job, message: getErrorMessage(error) });
    }
  };
  const reader = new FrameReader(MAX_FRAME_BYTES);
  const piece = new Uint8Array(PIECE_BYTES);
  // Parlor writes a message at once, so waiting for its rest blocks nothing, and `read` would change threads each time.
  const next = async () => reader.isInside ? Deno.stdin.readSync(piece) : await Deno.stdin.read(piece);
  for (let count = await next(); count !== null; count = await next()) {
    for (const { value, bytes } of reader.read(piece.subarray(0, count))) {
      const message = value as ParentMessage;
      if (message.kind === "job") {
        void run(message.job, message.value, bytes);
        continue;
      }
      const call = calls.get(message.id);
      calls.delete(message.id);
      call?.resolve({ value: message.value, bytes });
    }
  }
}

function post(message: ChildMessage, bytes: readonly Uint8Array[] = []): void {
  for (const piece of encodeFrame(message, bytes)) {
    for (let at = 0; at < piece.length;) at += Deno.stdout.writeSync(piece.subarray(at));
  }
}
