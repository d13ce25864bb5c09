/** Search, what runs, the trash. */
import { counter } from "../plural.ts";

const count = counter("en");

/** English. */
export const house = {
  search: {
    title: "Search",
    label: "Search all chats",
    placeholder: "Words, or a “phrase” in quotes",
    searching: "Searching",
    count: (n: number) => count(n, { one: "hit", other: "hits" }),
    atLeast: (n: number) => `${count(n, { one: "hit", other: "hits" })} so far`,
    hits: "Hits",
    inTitle: "Title",
    failed: "The search failed",
    emptyTitle: "Find what was said",
    emptyText: "All chats are searched while you type. A hit leads to its message.",
    noneTitle: "Nothing found",
    noneText: "No chat holds all of these words. Try fewer of them.",
  },

  activity: {
    title: "Activity",
    running: "Running",
    ended: "Recently ended",
    failed: "Running work could not be read",
    noneTitle: "Nothing is running",
    noneText: "Replies, downloads, imports and other long work appear here. They go on when you leave the page.",
    reply: (clock: string) => `Reply, ${clock}`,
    stop: "Stop",
    stopReply: (title: string) => `Stop the reply in “${title}”`,
    cancelJob: (title: string) => `Cancel “${title}”`,
    of: (done: string, total: string) => `${done} of ${total}`,
    units: { steps: "steps", files: "files", items: "items", images: "images", letters: "letters" },
    states: {
      queued: "Waiting",
      running: "Running",
      verifying: "Checking",
      done: "Done",
      failed: "Failed",
      cancelled: "Cancelled",
    },
  },

  trash: {
    title: "Trash",
    intro: "What was deleted stays here for seven days.",
    failed: "The trash could not be read",
    noneTitle: "The trash is empty",
    noneText: "Deleted chats and messages can be restored from here.",
    untitled: "Untitled",
    removedAt: (when: string) => `deleted ${when}`,
    restore: "Restore",
    restoreIt: (title: string) => `Restore “${title}”`,
    restored: (title: string) => `“${title}” is back`,
    empty: "Empty the trash",
    emptied: "The trash is empty",
    askTitle: "Empty the trash?",
    askText: (n: number) =>
      `${count(n, { one: "entry is", other: "entries are" })} deleted for good. This cannot be undone.`,
    kinds: {
      conversation: "Chat",
      message: "Message",
      character: "Character",
      persona: "Persona",
      workflow: "Workflow",
      voice: "Voice",
      lorebook: "Lorebook",
      preset: "Preset",
      attachment: "Picture",
    },
  },
};
