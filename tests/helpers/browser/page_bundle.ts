/** Scripts for blank pages, from our own modules. */

/** Bundles a module with everything it imports. @returns JavaScript for a page. */
export async function bundleForPage(module: URL): Promise<string> {
  const output = await Deno.makeTempFile({ suffix: ".js" });
  try {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["bundle", "--quiet", "--platform", "browser", "--output", output, module.pathname],
      stderr: "piped",
    }).output();
    if (code !== 0) throw new Error(`Can't bundle the page: ${new TextDecoder().decode(stderr)}`);
    return await Deno.readTextFile(output);
  } finally {
    await Deno.remove(output);
  }
}
