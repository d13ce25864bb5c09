/** Texts of the sidebar and the chat list. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const nav = {
  nav: {
    label: "Chats and settings",
    open: "Open the chat list",
    fold: "Hide the sidebar",
    unfold: "Show the sidebar",
    characters: "Characters",
    newChat: "New chat",
    chats: "Chats",
    settings: "Settings",
    today: "Today",
    yesterday: "Yesterday",
    thisWeek: "This week",
    none: "Your chats will appear here.",
    untitled: "Untitled",
    failed: "Couldn’t load chats",
    answering: "Reply in progress",
    replyEnded: "Reply finished",
    search: "Search",
    activity: "Activity",
    runningCount: (n: number) => `, ${n} running`,
    pinned: "Pinned",
    chatCount: (n: number) => count(n, { one: "chat", other: "chats" }),
    menu: (title: string) => `Actions for “${title}”`,
    rename: "Rename",
    pin: "Pin",
    unpin: "Unpin",
    file: "Move to folder",
    delete: "Delete",
    renameTitle: "Rename chat",
    titleLabel: "Title",
    fileTitle: "Move chat to folder",
    folderLabel: "Folder",
    folderHint: "Enter a new name to create a folder. Empty folders disappear.",
    removeFromFolder: "Remove from folder",
    removed: "Chat deleted",
    skip: "Skip to chat",
  },
};
