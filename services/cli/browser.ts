/** Opens an address in the browser. */

const OPENERS: Partial<Record<typeof Deno.build.os, string[]>> = {
  darwin: ["open"],
  windows: ["rundll32", "url.dll,FileProtocolHandler"],
};

/**
 * Opens the browser, except over SSH, where it would be on the wrong machine.
 *
 * @param environment `BROWSER` overrides the program.
 * @returns Whether a program was started.
 */
export async function openBrowser(
  url: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  const isRemote = environment.SSH_CONNECTION !== undefined || environment.SSH_TTY !== undefined;
  const [command, ...args] = environment.BROWSER ? [environment.BROWSER] : OPENERS[Deno.build.os] ?? ["xdg-open"];
  if (command === undefined || (isRemote && !environment.BROWSER)) return false;
  // Doesn't prompt for permission to run programs: the address is printed in the terminal anyway.
  const { state } = await Deno.permissions.query({ name: "run", command });
  if (state !== "granted") return false;
  try {
    const child = new Deno.Command(command, { args: [...args, url], stdin: "null", stdout: "null", stderr: "null" });
    child.spawn().unref();
    return true;
  } catch {
    return false;
  }
}
