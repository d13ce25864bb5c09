/** Reads long answers of card sites in the sandbox. */
import { serveSandbox } from "../../platform/sandbox/child.ts";
import { readSiteAnswer, type SiteAnswerKind } from "./card_site_responses.ts";

await serveSandbox("card_site_child", {
  run(value, [bytes]) {
    const { card, ...answer } = readSiteAnswer(value as SiteAnswerKind, bytes!);
    return { value: answer, bytes: card && [card] };
  },
});
