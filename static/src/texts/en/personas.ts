/** Texts of personas. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const personas = {
  personas: {
    title: "Personas",
    intro: "Who you are in a chat. The description is sent to the model.",
    add: "New persona",
    import: "Import",
    imported: (n: number) => `${count(n, { one: "persona", other: "personas" })} imported`,
    open: "Open",
    exportCard: "Export card",
    addTitle: "New persona",
    editTitle: "Edit persona",
    loadFailed: "Couldn’t load personas",
    empty: "No personas yet",
    emptyText: "Without a persona, you chat under your own name.",
    noDescription: "No description",
    isDefault: "Default",
    setDefault: "Set as default",
    unsetDefault: "Remove as default",
    more: (name: string) => `More actions for ${name}`,
    remove: "Delete",
    removed: (name: string) => `${name} deleted`,
    missing: "This persona doesn’t exist",
    name: "Name",
    description: "Description",
    descriptionHint: "What others see and know about you.",
    picture: "Choose image",
    saved: (name: string) => `${name} saved`,
    saveFailed: "Couldn’t save the persona",
    clash: "This persona was changed elsewhere",
    clashText: (name: string, description: string) =>
      `It’s now ${name}. ${description} If you save again, your version replaces it.`,
    choose: "Choose a persona",
    nobody: "No persona",
    you: (name: string) => `You: ${name}`,
    speakingAs: (name: string) => `Speaking as ${name}`,
    none: "My own name",
    manage: "Manage personas",
  },
};
