import { expect, test } from "vitest";

const SERVICES = new URL("../../../services/", import.meta.url);
const CHILD = new URL("../../helpers/processes/worker_defects_child.ts", import.meta.url).pathname;

/** Files below a folder by the end of their names. */
async function filesBelow(folder: URL, ending: string): Promise<URL[]> {
  const found = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) found.push(...await filesBelow(new URL(`${name}/`, folder), ending));
    else if (name.endsWith(ending)) found.push(new URL(name, folder));
  }
  return found;
}

test("every Worker is opened so that its uncaught errors are logged", async () => {
  const opensItself = [];
  for (const file of await filesBelow(SERVICES, ".ts")) {
    const text = await Deno.readTextFile(file);
    if (file.pathname.endsWith("_worker.ts")) {
      expect([file.pathname, text]).toContainEqual(expect.stringMatching(/^ *reportDefects\(/m));
    }
    if (/\bnew Worker\(/.test(text)) opensItself.push(file.href.slice(SERVICES.href.length));
  }
  expect(opensItself.sort()).toEqual(["process/worker.ts"]);
});

test(
  "an uncaught error in a Worker is one line of the log and an error event, and doesn't end the Worker",
  async () => {
    const files = await filesBelow(SERVICES, "_worker.ts");
    expect(files.length).toBeGreaterThan(3);
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--quiet", "-A", CHILD, ...files.map(({ href }) => href)],
    }).output();
    const linesOf = (bytes: Uint8Array) =>
      new TextDecoder().decode(bytes).trim().split("\n").map((line) => JSON.parse(line));
    const answers: [string, string][] = linesOf(stdout);
    const logged: { worker: string; error: string }[] = linesOf(stderr);
    expect(code).toBe(0);
    expect(answers.filter(([worker]) => worker === "zip_worker")).toEqual([
      ["zip_worker", expect.stringMatching(/^error event: TypeError: /)],
      ["zip_worker", expect.stringMatching(/^error event: TypeError: /)],
    ]);
    // The others catch what they can't read.
    const failed = answers.filter(([, came]) => came !== "answer").map(([worker]) => worker);
    expect(failed.length).toBeGreaterThan(3);
    expect(logged.map(({ worker }) => worker)).toEqual(failed);
    for (const line of logged) {
      expect(line).toMatchObject({ level: "error", message: "Uncaught error in a Worker" });
      expect(line.error).toMatch(/^TypeError: .*\n +at /);
    }
  },
  120_000,
);
