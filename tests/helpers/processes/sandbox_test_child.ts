/** A child of the sandbox that does what a hostile file would like to do. */
import { serveSandbox } from "../../../services/platform/sandbox/child.ts";

const kept: Uint8Array[] = [];

await serveSandbox("sandbox_test_child", {
  async run(value, bytes, host) {
    const { what, arg } = value as { what: string; arg?: string };
    switch (what) {
      case "echo":
        return { value: { pid: Deno.pid, arg }, bytes };
      case "spin":
        for (;;);
      case "sleep":
        await new Promise(() => {});
        break;
      case "allocate":
        for (;;) kept.push(new Uint8Array(8 * 1024 * 1024).fill(1));
      case "hold":
        kept.push(new Uint8Array(Number(arg)).fill(1));
        await host.call("measured");
        return {};
      case "flood":
        for (;;) host.send("take", "x".repeat(1024 * 1024));
      case "large":
        return { value: "x".repeat(Number(arg)) };
      case "noise":
        Deno.stdout.writeSync(new Uint8Array(100).fill(255));
        await new Promise(() => {});
        break;
      case "exit":
        console.log("the last words");
        Deno.exit(3);
        break;
      case "throw":
        throw new Error("the file is odd");
      case "call": {
        const answer = await host.call("double", arg, bytes);
        return { value: answer.value, bytes: answer.bytes };
      }
      case "late":
        setTimeout(() => host.send("take", "late"), 1);
        throw new Error("too early");
      case "match":
        return { value: new RegExp(arg!).test("a".repeat(40) + "!") };
      case "attempts":
        return { value: await listAllowed(arg!) };
    }
    throw new Error(`Unknown: ${what}`);
  },
});

/** Tries everything that permissions allow, and returns the names of what worked. */
async function listAllowed(folder: string): Promise<string[]> {
  const attempts: Record<string, () => unknown> = {
    read: () => Deno.readTextFile("/etc/passwd"),
    "read itself": () => Deno.readTextFile(new URL(import.meta.url)),
    list: () => Array.fromAsync(Deno.readDir("/")),
    write: () => Deno.writeTextFile(`${folder}/written`, "x"),
    env: () => Deno.env.toObject(),
    run: () => new Deno.Command("/bin/true").output(),
    connect: () => Deno.connect({ port: 1, hostname: "127.0.0.1" }),
    listen: () => Deno.listen({ port: 0, hostname: "127.0.0.1" }).close(),
    fetch: () => fetch("http://127.0.0.1:1/"),
    resolve: () => Deno.resolveDns("localhost", "A"),
    kill: () => Deno.kill(Deno.ppid, "SIGTERM"),
    ffi: () => Deno.dlopen("libc.so.6", {}),
    import: () => import(`file://${folder}/module.ts`),
    grant: () =>
      Deno.permissions.request({ name: "read" }).then(({ state }) => state === "granted" || Promise.reject()),
  };
  const allowed: string[] = [];
  for (const [name, attempt] of Object.entries(attempts)) {
    try {
      await attempt();
      allowed.push(name);
    } catch (error) {
      // A refused connection was attempted.
      if (error instanceof Deno.errors.ConnectionRefused) allowed.push(name);
    }
  }
  return allowed;
}
