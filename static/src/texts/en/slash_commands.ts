/** What the commands behind `/` do. */

/** English. */
export const slashCommands = {
  slashCommands: {
    new: "New chat",
    temporary: "Temporary chat, not stored anywhere",
    title: "Rename this chat",
    model: "Choose the model",
    persona: "Speak as a persona, by its name",
    image: "Draw a picture, of the last turns or of a prompt",
    lorebook: "The character’s lorebook",
    regenerate: "Rewrite the last reply",
    continue: "Continue the last reply",
    write: "Write my next message for me",
    fork: "Branch from the last message",
    hide: "Hide the last message from the model, or show it again",
    delete: "Delete the last message",
    search: "Search in this chat",
    options: "Options of this chat",
    preview: "What will be sent",
    history: "Earlier versions",
  },
};
