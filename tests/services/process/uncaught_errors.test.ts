import { expect, test } from "vitest";

test("logs uncaught errors completely and keeps the process alive", { tags: ["L05"] }, async () => {
  const path = new URL("../../helpers/processes/defects_child.ts", import.meta.url).pathname;
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args: ["run", path] }).output();
  expect(new TextDecoder().decode(stdout)).toBe("alive\n".repeat(3));
  expect(success).toBe(true);
  const logged = new TextDecoder().decode(stderr).trim().split("\n").map((line) => JSON.parse(line));
  expect(logged.map(({ error }) => error.split("\n")[0])).toEqual([
    "Error: thrown in a timer",
    "Error: rejected and forgotten",
    "no error at all",
  ]);
});
