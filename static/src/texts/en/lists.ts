/** Texts of search, activity, and selecting several items in a list. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const lists = {
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

  share: {
    title: "Received content",
    intro: "Received from another app or website. It’s on this device only, until you add it to a chat.",
    noneTitle: "Nothing is waiting",
    noneText: "What you share with Parlor from other apps waits here for up to 7 days.",
    untitled: "Received content",
    received: (time: string) => `Received ${time}`,
    files: "Files",
    delete: "Delete",
    deleteOf: (title: string) => `Delete “${title}”`,
    waiting: (n: number) =>
      `${count(n, { one: "received item", other: "received items" })} from other apps or websites`,
    problems: {
      not_ready: "Parlor wasn’t ready to receive it. Share it again.",
      full:
        "The latest item wasn’t kept: 10 items or 100 MB are already waiting. Add or delete some, then share it again.",
      too_large: "The latest item wasn’t kept: it’s larger than 100 MB. Upload large files in a chat instead.",
      empty: "The latest item was empty.",
    },
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
    /** Progress without a total. */
    counted: {
      steps: (n: number) => count(n, { one: "step", other: "steps" }),
      files: (n: number) => count(n, { one: "file", other: "files" }),
      items: (n: number) => count(n, { one: "item", other: "items" }),
      images: (n: number) => count(n, { one: "image", other: "images" }),
      letters: (n: number) => count(n, { one: "character", other: "characters" }),
    },
    states: {
      queued: "Waiting",
      running: "Running",
      verifying: "Verifying",
      done: "Done",
      failed: "Failed",
      cancelled: "Canceled",
    },
  },

  selection: {
    label: "Selected items",
    end: "Stop selecting",
    all: "Select all",
    export: "Export",
    count: (n: number) => `${n} selected`,
    fileChats: (n: number) => `Move ${count(n, { one: "chat", other: "chats" })} to folder`,
    chatsRemoved: (n: number) => `${count(n, { one: "chat", other: "chats" })} deleted`,
    chatsFiled: (n: number) => `${count(n, { one: "chat", other: "chats" })} moved`,
    chatsPinned: (n: number) => `${count(n, { one: "chat", other: "chats" })} pinned`,
    chatsUnpinned: (n: number) => `${count(n, { one: "chat", other: "chats" })} unpinned`,
    fileCharacters: (n: number) => `Move ${count(n, { one: "character", other: "characters" })} to folder`,
    charactersFiled: (n: number) => `${count(n, { one: "character", other: "characters" })} moved`,
    charactersRemoved: (n: number) => `${count(n, { one: "character", other: "characters" })} deleted`,
    favored: (n: number) => `${count(n, { one: "character", other: "characters" })} added to favorites`,
    unfavored: (n: number) => `${count(n, { one: "character", other: "characters" })} removed from favorites`,
    favorite: "Add to favorites",
    unfavorite: "Remove from favorites",
  },
};
