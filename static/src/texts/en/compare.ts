/** Texts of comparing two versions of a message. */

/** English. */
export const compare = {
  compare: {
    title: "Compare versions",
    failed: "Couldn’t load the versions",
    first: "First version",
    second: "Second version",
    hint: "What only one version has is underlined.",
    same: "Both versions have the same text.",
    tooDifferent: "The versions differ too much to mark what changed.",
    show: "Show in chat",
    isShown: "Shown in chat",
  },
};
