/** Texts of comparing two versions of a message. */
import type { Texts } from "../en/en.ts";

/** German. */
export const compare: Pick<Texts, "compare"> = {
  compare: {
    title: "Versionen vergleichen",
    failed: "Die Versionen konnten nicht geladen werden",
    first: "Erste Version",
    second: "Zweite Version",
    hint: "Was nur eine Version enthält, ist unterstrichen.",
    same: "Beide Versionen haben denselben Text.",
    tooDifferent: "Die Versionen unterscheiden sich zu stark, um die Unterschiede zu markieren.",
    show: "Im Chat anzeigen",
    isShown: "Im Chat angezeigt",
  },
};
