import { expect, test } from "vitest";
import { findSurroundings } from "../../../services/settings/setup_environment.ts";

test("a container is known by the file that its engine put there", async () => {
  const mark = await Deno.makeTempFile({ prefix: "parlor-mark-" });
  try {
    expect(await findSurroundings(["127.0.0.1"], ["/nowhere/mark", mark])).toEqual({
      isContainer: true,
      discoverHosts: ["127.0.0.1"],
    });
    expect((await findSurroundings([], ["/nowhere/mark"])).isContainer).toBe(false);
  } finally {
    await Deno.remove(mark);
  }
});
