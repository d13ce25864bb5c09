/** Opens an address in the person's browser, where that is possible and sensible. */

const OPENERS: Partial<Record<typeof Deno.build.os, string[]>> = {
  darwin: ["open"],
  windows: ["rundll32", "url.dll,FileProtocolHandler"],
};

/**
 * Opens a browser. Over SSH it would be one on the wrong machine, so there none is.
 *
 * @param environment `BROWSER` names a program of the person's own.
 * @returns Whether a program was started; whether it shows anything is not known.
 */
export async function openBrowser(
  url: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  const isRemote = environment.SSH_CONNECTION !== undefined || environment.SSH_TTY !== undefined;
  const [command, ...args] = environment.BROWSER ? [environment.BROWSER] : OPENERS[Deno.build.os] ?? ["xdg-open"];
  if (command === undefined || (isRemote && !environment.BROWSER)) return false;
  // Where programs may not be started the address on the terminal has to do; asking the person about it helps nobody.
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
