/** Texts of the slash commands. */

/** English. */
export const slashCommands = {
  slashCommands: {
    new: "New chat",
    temporary: "Temporary chat (not saved)",
    title: "Rename this chat",
    model: "Choose a model",
    persona: "Switch to a persona by name",
    image: "Generate an image of the scene or from a prompt",
    insert: "Insert a prompt or resource of a tool server",
    lorebook: "Open the character’s lorebook",
    regenerate: "Regenerate the last reply",
    continue: "Continue the last reply",
    write: "Write my next message for me",
    fork: "Branch from the last message",
    hide: "Hide the last message from the model, or show it again",
    delete: "Delete the last message",
    search: "Search in this chat",
    recall: "Find what other chats say, to quote it",
    options: "Chat options",
    preview: "Prompt preview",
    history: "Earlier versions",
  },
};
