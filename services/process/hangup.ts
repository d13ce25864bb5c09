/** Finds out whether this process is to outlive its terminal. */

/**
 * Returns whether this process ignores SIGHUP, as `nohup` starts programs. To be asked before SIGHUP gets a listener, which
 * would replace that.
 *
 * The runtime doesn't tell, but a child inherits what is ignored (POSIX, exec): one that survives its own SIGHUP has.
 */
export async function isHangupIgnored(): Promise<boolean> {
  const script = "kill -HUP $$; echo ignored";
  try {
    const child = new Deno.Command("sh", { args: ["-c", script], stdin: "null", stdout: "piped", stderr: "null" });
    const { stdout } = await child.output();
    return new TextDecoder().decode(stdout).trim() === "ignored";
  } catch {
    return false; // an image without a shell, which has no nohup either
  }
}
