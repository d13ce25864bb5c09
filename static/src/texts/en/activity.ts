/** Texts of search and activity. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const activity = {
  search: {
    page: (n: number) => `Page ${n}`,
    title: "Search",
    label: "Search all chats",
    placeholder: "Words or a “quoted phrase”",
    searching: "Searching",
    count: (n: number) => count(n, { one: "result", other: "results" }),
    atLeast: (n: number) => `${count(n, { one: "result", other: "results" })} so far`,
    hits: "Results",
    inTitle: "Title",
    failed: "Search failed",
    emptyTitle: "Search your chats",
    emptyText: "Results appear as you type. Select one to open its message.",
    clear: "Clear search",
    noneTitle: "No results",
    noneText: "No chat contains all of these words. Try fewer.",
  },

  activity: {
    title: "Activity",
    running: "Running",
    ended: "Recently finished",
    failed: "Couldn’t load running tasks",
    noneTitle: "Nothing is running",
    noneText: "Replies, downloads, imports and other long tasks appear here. They continue when you leave the page.",
    reply: (clock: string) => `Reply, ${clock}`,
    stop: "Stop",
    stopReply: (title: string) => `Stop the reply in “${title}”`,
    cancelJob: (title: string) => `Cancel “${title}”`,
    of: (done: string, total: string) => `${done} of ${total}`,
    units: { steps: "steps", files: "files", items: "items", images: "images", letters: "characters" },
    states: {
      queued: "Waiting",
      running: "Running",
      verifying: "Verifying",
      done: "Done",
      failed: "Failed",
      cancelled: "Canceled",
    },
  },
};
