/** Personas: who the owner is in a chat. */
import { counter } from "../plural.ts";

const count = counter("en");

/** English. */
export const personas = {
  personas: {
    title: "Personas",
    intro: "Who you are in a chat. The description is told to the model.",
    add: "New persona",
    import: "Import",
    imported: (n: number) => `${count(n, { one: "persona", other: "personas" })} imported`,
    open: "Open",
    exportCard: "Export the card",
    addTitle: "New persona",
    editTitle: "Edit persona",
    loadFailed: "The personas could not be loaded",
    empty: "No personas yet",
    emptyText: "Without one you speak under your own name.",
    noDescription: "No description",
    isDefault: "Used by default",
    setDefault: "Use by default",
    unsetDefault: "No longer use by default",
    more: (name: string) => `More for ${name}`,
    remove: "Delete",
    removed: (name: string) => `${name} deleted`,
    missing: "This persona does not exist",
    name: "Name",
    description: "Description",
    descriptionHint: "What others see and know of you.",
    picture: "Choose a picture",
    saved: (name: string) => `${name} saved`,
    saveFailed: "The persona could not be saved",
    clash: "This persona was changed somewhere else",
    clashText: (name: string, description: string) =>
      `It now says: ${name}. ${description} Saving again puts yours in its place.`,
    choose: "Choose a persona",
    nobody: "No persona",
    you: (name: string) => `You: ${name}`,
    speakingAs: (name: string) => `Speaking as ${name}`,
    none: "Under my own name",
    manage: "Manage personas",
  },
};
