import { expect, test } from "vitest";

test("logs uncaught errors completely and keeps the process alive", { tags: ["L05"] }, async () => {
  const path = new URL("../../helpers/processes/defects_child.ts", import.meta.url).pathname;
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args: ["run", "--quiet", path] })
    .output();
  expect(new TextDecoder().decode(stdout)).toBe("alive\n".repeat(3));
  expect(success).toBe(true);
  const logged = new TextDecoder().decode(stderr).trim().split("\n").map((line) => JSON.parse(line));
  expect(logged.map(({ error }) => error.split("\n")[0])).toEqual([
    "Error: thrown in a timer",
    "Error: rejected and forgotten",
    "no error at all",
  ]);
});

const MODULE = new URL("../../../services/process/process_events.ts", import.meta.url).href;
const ASK = `import { isHangupIgnored } from "${MODULE}"; console.log(await isHangupIgnored());`;

/** Asks in its own process, which a shell starts after `before`. */
async function ask(before: string): Promise<string> {
  const script = `${before} exec "$0" eval "$1"`;
  const { stdout } = await new Deno.Command("sh", { args: ["-c", script, Deno.execPath(), ASK] }).output();
  return new TextDecoder().decode(stdout).trim();
}

test.skipIf(Deno.build.os === "windows")(
  "tells a program that is to outlive its terminal from another one",
  async () => {
    expect(await ask("")).toBe("false");
    expect(await ask("trap '' HUP;")).toBe("true");
  },
);
