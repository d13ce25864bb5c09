/** Finds real parts, which a machine may lack. */

/**
 * Gives the folder of a real part from the environment, where `.ci/run` names it.
 *
 * @returns `undefined`, after saying so, when the variable is not set: the tests that need the part are skipped then.
 */
export function realPart(variable: string, script: string): string | undefined {
  const folder = Deno.env.get(variable);
  if (folder) return folder;
  console.warn(
    `SKIPPED: ${variable} is not set; "tests/real/tools/${script} install DIR" makes the folder it has to name`,
  );
  return undefined;
}
