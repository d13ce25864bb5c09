/** A process whose sandbox computes: prints the id of the child, which it never ends. */
import { Sandbox, type SandboxKind } from "../../../services/platform/sandbox/sandbox.ts";

if (import.meta.main) {
  const kind: SandboxKind = {
    url: new URL("./sandbox_test_child.ts", import.meta.url),
    maxChildren: 1,
    maxCpuMs: 600_000,
    maxResidentBytes: 512 * 1024 * 1024,
    maxMessageBytes: 1024 * 1024,
  };
  const sandbox = new Sandbox();
  const { value } = await sandbox.run(kind, { value: { what: "echo" } });
  const spinning = sandbox.run(kind, { value: { what: "spin" } });
  console.log((value as { pid: number }).pid);
  await spinning;
}
