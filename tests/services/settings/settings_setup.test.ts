import { expect, test } from "vitest";
import { detectSetupEnvironment } from "../../../services/settings/settings.ts";

test("detects a container by the marker file of its engine", async () => {
  const marker = await Deno.makeTempFile({ prefix: "parlor-marker-" });
  try {
    expect(await detectSetupEnvironment(["127.0.0.1"], ["/nowhere/marker", marker])).toEqual({
      isContainer: true,
      discoverHosts: ["127.0.0.1"],
    });
    expect((await detectSetupEnvironment([], ["/nowhere/marker"])).isContainer).toBe(false);
  } finally {
    await Deno.remove(marker);
  }
});
