/** A child in place of the image codecs that hangs, crashes or waits, by its limit of pixels. */
import { serveSandbox } from "../../../services/platform/sandbox/child.ts";

await serveSandbox("image_test_child", {
  async run(value) {
    const { maxPixels } = value as { maxPixels: number };
    if (maxPixels === 1_000) { for (;;); }
    if (maxPixels === 2_000) Deno.exit(1);
    await new Promise(() => {});
    return {};
  },
});
