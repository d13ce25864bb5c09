/** Processes as the system sees them. */

/** Says whether a process has ended; one that nobody has waited for yet counts as ended. */
export async function isGone(pid: number): Promise<boolean> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "stat=", "-p", String(pid)] }).output();
  const state = new TextDecoder().decode(stdout).trim();
  return state === "" || state.startsWith("Z");
}
