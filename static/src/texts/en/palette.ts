/** Texts of the command palette and the keyboard shortcuts. */

/** English. */
export const palette = {
  palette: {
    title: "Commands",
    placeholder: "Search chats, commands and settings",
    recent: "Recent chats",
    commands: "Commands",
    searchFor: (query: string) => `Search all chats for “${query}”`,
    light: "Light theme",
    dark: "Dark theme",
    system: "System theme",
  },

  shortcuts: {
    title: "Keyboard shortcuts",
    everywhere: "Everywhere",
    inChat: "In a chat",
    inLists: "In lists and menus",
    escape: "Stop the reply, then close what’s open",
    send: "Send the message",
    line: "New line",
    editLast: "Edit your last message (in an empty message field)",
    commands: "Show commands (in an empty message field)",
    variants: "Other versions of the last reply",
    find: "Search in this chat",
    step: "Previous or next row",
    ends: "First or last row",
  },
};
