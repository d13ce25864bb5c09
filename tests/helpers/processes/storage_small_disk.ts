/** A small disk, for tests of full disks. */

/** Mounts a file system of 2 MiB, or more, until the end of the scope; gives nothing where the machine does not let us. */
export async function smallFileSystem(path: string, sizeMib = 2): Promise<AsyncDisposable | undefined> {
  if (Deno.build.os !== "linux" || Deno.uid() !== 0) return undefined;
  await Deno.mkdir(path);
  const options = { args: ["-t", "tmpfs", "-o", `size=${sizeMib}m,mode=0700`, "tmpfs", path] };
  if (!(await new Deno.Command("mount", options).output()).success) return undefined;
  return {
    async [Symbol.asyncDispose]() {
      // At once, also while the system still holds on to a file of a process that has just ended.
      const { success, stderr } = await new Deno.Command("umount", { args: ["--lazy", path] }).output();
      if (!success) throw new Error(`Can't unmount "${path}": ${new TextDecoder().decode(stderr)}`);
    },
  };
}

/** Remounts a file system as read-only. */
export async function makeReadOnly(path: string): Promise<void> {
  const { success } = await new Deno.Command("mount", { args: ["-o", "remount,ro", path] }).output();
  if (!success) throw new Error(`Can't mount "${path}" for reading alone`);
}

/** Fills a file system to the last byte; removing the file clears it. */
export async function fill(path: string): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true });
  for (const size of [65_536, 1]) {
    try {
      while (true) await file.write(new Uint8Array(size));
    } catch {
      // Full for writes of that size.
    }
  }
}
