/** Reads and writes large cards in the sandbox. */
import { serveSandbox } from "../../platform/sandbox/child.ts";
import { type CardOrder, runCardOrder, toCardFailure } from "./card_work.ts";

await serveSandbox("card_child", {
  async run(value, bytes, host) {
    try {
      return await runCardOrder(value as CardOrder, bytes, host);
    } catch (error) {
      return { value: toCardFailure(error) };
    }
  },
});
