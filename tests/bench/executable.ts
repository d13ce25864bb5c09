/** The compiled executable in dist/, if it was built, and the runtime inside it. */
import type { Bench } from "./bench.ts";

const DIST = new URL("../../dist/", import.meta.url);

/** Finds the executable. */
export async function executableHere(): Promise<string | undefined> {
  const names = Deno.build.os === "windows" ? ["parlor.exe"] : ["parlor", `parlor-${Deno.build.os}-${Deno.build.arch}`];
  for (const name of names) {
    const path = new URL(name, DIST).pathname;
    const isFile = await Deno.stat(path).then((found) => found.isFile, () => false);
    if (isFile) return path;
  }
  return undefined;
}

/**
 * Gives the size of the runtime inside a compiled program: `deno compile` appends the program to an ELF file, which ends
 * with its table of sections.
 *
 * @throws {Error} when the file is no 64-bit ELF file.
 */
export async function runtimeBytes(path: string): Promise<number> {
  using file = await Deno.open(path);
  const head = new Uint8Array(64);
  await file.read(head);
  const view = new DataView(head.buffer);
  if (view.getUint32(0) !== 0x7f454c46 || head[4] !== 2) throw new Error(`Can't read "${path}" as a 64-bit ELF file`);
  return Number(view.getBigUint64(0x28, true)) + view.getUint16(0x3a, true) * view.getUint16(0x3c, true);
}

/** Compiles the counterpart like Parlor; `undefined` if this machine can't compile. */
export async function helloExecutable(
  bench: Bench,
  source: string,
): Promise<{ command: string; args: string[] } | undefined> {
  const command = `${bench.folder}/hello`;
  const compiler = Deno.env.get("DENO_COMPILE_CLI") ?? Deno.execPath();
  const args = ["compile", "--quiet", "--no-config", "--allow-net", "--output", command, source];
  const { success } = await new Deno.Command(compiler, { args, stdout: "null", stderr: "null" }).output();
  return success ? { command, args: [] } : undefined;
}
