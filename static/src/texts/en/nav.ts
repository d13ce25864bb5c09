/** The sidebar and the list of chats. */
import { counter } from "../plural.ts";

const count = counter("en");

/** English. */
export const nav = {
  nav: {
    label: "Chats and settings",
    open: "Open the list of chats",
    fold: "Hide the sidebar",
    unfold: "Show the sidebar",
    characters: "Characters",
    newChat: "New chat",
    chats: "Chats",
    settings: "Settings",
    today: "Today",
    yesterday: "Yesterday",
    thisWeek: "This week",
    none: "Your chats will be listed here.",
    untitled: "Untitled",
    failed: "The list of chats could not be loaded",
    answering: "A reply is being written",
    replyEnded: "The reply has ended",
    search: "Search",
    activity: "Activity",
    runningCount: (n: number) => `, ${n} running`,
    pinned: "Pinned",
    chatCount: (n: number) => count(n, { one: "chat", other: "chats" }),
    menu: (title: string) => `Actions for “${title}”`,
    rename: "Rename",
    pin: "Pin",
    unpin: "Unpin",
    file: "Move to a folder",
    delete: "Delete",
    renameTitle: "Rename the chat",
    titleLabel: "Title",
    fileTitle: "Move the chat to a folder",
    folderLabel: "Folder",
    folderHint: "A new name makes a new folder. A folder disappears with its last chat.",
    unfile: "Take out",
    removed: "Chat deleted",
    skip: "Skip to the conversation",
  },
};
