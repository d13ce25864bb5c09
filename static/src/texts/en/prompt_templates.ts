/** Texts of the prompt templates. */

/** English. */
export const promptTemplates = {
  promptTemplates: {
    title: "Prompt templates",
    intro: "Texts that you use often. Type / and the name in a chat to insert one.",
    empty: "No templates yet",
    emptyText: "Write one for what you ask again and again, such as a summary or a translation.",
    add: "New template",
    edit: "Edit template",
    name: "Name",
    nameHint: "Letters, digits, - and _. You type it after the slash.",
    nameWrong: "Use letters, digits, - and _ only",
    nameTaken: "Another template has this name",
    text: "Text",
    textHint: "A word in double brackets, such as [[topic]], is asked for when you insert the template.",
    insert: "Insert",
    remove: (name: string) => `Delete ${name}`,
    removed: (name: string) => `${name} deleted`,
  },
};
