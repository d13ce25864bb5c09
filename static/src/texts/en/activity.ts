/** Texts of search, activity and the trash. */
import { counter } from "../plural.ts";

const count = counter("en");

/** English. */
export const house = {
  search: {
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

  trash: {
    title: "Trash",
    intro: "Deleted items stay here for seven days.",
    failed: "Couldn’t load the trash",
    noneTitle: "Trash is empty",
    noneText: "You can restore deleted chats and messages from here.",
    untitled: "Untitled",
    removedAt: (when: string) => `deleted ${when}`,
    restore: "Restore",
    restoreIt: (title: string) => `Restore “${title}”`,
    restored: (title: string) => `Restored “${title}”`,
    empty: "Empty trash",
    emptied: "Trash emptied",
    askTitle: "Empty trash?",
    askText: (n: number) =>
      `This permanently deletes ${count(n, { one: "item", other: "items" })}. You can’t undo this.`,
    kinds: {
      conversation: "Chat",
      message: "Message",
      character: "Character",
      persona: "Persona",
      workflow: "Workflow",
      voice: "Voice",
      lorebook: "Lorebook",
      preset: "Preset",
      attachment: "Image",
    },
  },
};
