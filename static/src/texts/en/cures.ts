/** Texts of what helps after a failed reply. */

/** English. */
export const cures = {
  cures: {
    keyHint: (connection: string) => `Saved for “${connection}”, stored encrypted and never shown again.`,
    saveKey: "Save key and retry",
    model: "Model for this chat",
    useModel: "Use and retry",
    noModels: (connection: string) => `“${connection}” doesn’t list any models`,
    download: (model: string) => `Download “${model}”`,
    downloading: (model: string) => `Downloading “${model}”`,
    downloadingThenRetry: (model: string) => `Downloading “${model}”. The message is sent again when it’s done.`,
    retryWhenDownloaded: "Retry when it’s done",
    downloadFailed: (model: string) => `Couldn’t download “${model}”`,
    waiting: (connection: string) => `The reply is retried as soon as “${connection}” responds.`,
    stopWaiting: "Stop waiting",
    edit: "Edit connection",
    summary: "Start from a summary",
    dropOldest: "Drop oldest messages",
    shorter: (tokens: string) => `Limit replies to ${tokens} tokens`,
    summarizing: "Summarizing older messages",
    dropped: (tokens: string) => `This chat now sends up to ${tokens} tokens. The limit is in its options.`,
    nothingToDrop: "Nothing older can be left out. Shorten your last message or the system prompt.",
    noSummary: "The model didn’t write a summary",
  },
};
