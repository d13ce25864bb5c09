/** Texts of the list of connections and their state. */

/** English. */
export const connections = {
  connection: {
    none: "No model connected",
    checking: "Checking the model",
    away: "Unreachable",
    demo: "Demo",
    states: {
      unknown: "Not tested yet",
      running: "Checking the model",
      good: "Ready",
      bad: "Unreachable",
      refused: "Access denied",
      starting: "Loading the model",
      busy: "Busy",
      failing: "Last reply failed",
    },
  },

  firstRun: {
    title: "Connect a language model",
    text:
      "Replies currently come from the built-in demo, which isn’t a language model. Parlor can look for a model on this machine.",
    find: "Find a model",
    manual: "Enter a URL",
    later: "Not now",
  },
};
