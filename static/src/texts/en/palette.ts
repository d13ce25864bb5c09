/** The command palette and the overview of keys. */

/** English. */
export const palette = {
  palette: {
    title: "Commands",
    placeholder: "A chat, a command, a setting",
    recent: "Recent chats",
    commands: "Commands",
    searchFor: (query: string) => `Search all chats for “${query}”`,
    light: "Light theme",
    dark: "Dark theme",
    system: "Same theme as the system",
  },

  shortcuts: {
    title: "Keyboard shortcuts",
    everywhere: "Everywhere",
    inChat: "In a chat",
    inLists: "In lists and menus",
    escape: "Stop the reply, then close what is open",
    send: "Send the message",
    line: "Break the line",
    editLast: "In an empty message field: edit your last message",
    commands: "In an empty message field: commands",
    variants: "Other variants of the last reply",
    find: "Search in this chat",
    step: "One row on or back",
    ends: "First and last row",
  },
};
