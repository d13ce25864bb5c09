/** Texts of earlier versions of characters, personas, workflows and voices. */

/** English. */
export const history = {
  history: {
    open: "Earlier versions",
    title: (name: string) => `Earlier versions: ${name}`,
    intro: "Every change stores the previous version: up to 50 versions, for 30 days.",
    failed: "Couldn’t load earlier versions",
    none: "No earlier versions yet. The first change creates one.",
    restore: "Restore",
    restoreFailed: "Couldn’t restore this version",
    restoreOf: (moment: string) => `Restore the version replaced ${moment}`,
    restored: (name: string) => `${name} restored`,
    same: "The text hasn’t changed.",
    causes: {
      put: "Saved",
      patch: "Saved",
      avatar: "Image replaced",
      portrait: "Portrait generated",
      restore: "Earlier version restored",
    },
    portraitDrawn: "Portrait generated",
    exportTooLarge:
      "This file is larger than Parlor’s import limit. Other programs may open it; Parlor won’t import it.",
  },
};
