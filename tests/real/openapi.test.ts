/** The OpenAPI document says what the server does: a fuzzer compares each response with it. */
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { startPermissions } from "../../build.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_SCHEMATHESIS_DIR", "schemathesis.sh");
const SCRIPT = fileURLToPath(new URL("tools/schemathesis.sh", import.meta.url));
const MAIN = fileURLToPath(new URL("../../main.ts", import.meta.url));
const SECONDS = Deno.env.get("LONG_TESTS") ? 600 : 60;

describe.skipIf(INSTALLED === undefined)("with a fuzzer of OpenAPI documents", { timeout: 900_000 }, () => {
  test("no request has an undocumented status or content, or ends in an internal error", async () => {
    const parlor = [Deno.execPath(), "run", "--quiet", ...await startPermissions(), MAIN];
    const { success, stdout } = await new Deno.Command("bash", {
      args: [SCRIPT, "run", INSTALLED!, String(SECONDS), ...parlor],
      stdin: "null",
      stderr: "inherit",
    }).output();
    const output = new TextDecoder().decode(stdout);
    expect(success, output.slice(-20_000)).toBe(true);
    // A run that reaches nothing finds nothing. A quiet machine gets to some 200 in a minute.
    expect(Number(/^ {2}Tested: (\d+)$/m.exec(output)?.[1])).toBeGreaterThan(50);
  });
});
