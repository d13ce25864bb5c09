/** Texts of the settings pages data, about and trash. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const data = {
  about: {
    version: "Version",
    text: "Parlor runs on your own machine. This page loads nothing from other servers.",
    licence: "Parlor is free software under the MIT License. It includes open-source packages with their own licenses.",
    findings: "Health check",
    findingsFailed: "Couldn’t run the health check",
    checking: "Checking",
    checkAgain: "Check again",
    wrong: (n: number) => n === 0 ? "No problems found." : `${count(n, { one: "problem", other: "problems" })} found.`,
    levels: { ok: "OK", note: "Note", problem: "Problem" },
  },

  data: {
    title: "Data",
    failed: "Couldn’t calculate storage use",
    space: "Storage space",
    total: (size: string) => `${size} used in total.`,
    uses: {
      chats: "Chats and settings",
      characters: "Characters",
      attachments: "Images and recordings in chats",
      documents: "Documents",
      models: "Models",
      voices: "Voice samples",
      rest: "Other",
    },
    backups: "Backups",
    noneYet: "No backups yet.",
    byHand: "To back up from the command line while the server runs:",
    key: "You need the storage key to restore a backup. Save a copy somewhere else: parlor key export.",
  },

  trash: {
    title: "Trash",
    intro: "Deleted items stay here for seven days.",
    failed: "Couldn’t load the trash",
    noneTitle: "Trash is empty",
    noneText: "Nothing to do here. What you delete can be restored for seven days.",
    untitled: "Untitled",
    removedAt: (when: string) => `deleted ${when}`,
    restore: "Restore",
    restoreIt: (title: string) => `Restore “${title}”`,
    restored: (title: string) => `Restored “${title}”`,
    empty: "Empty trash",
    emptied: "Trash emptied",
    askTitle: "Empty trash?",
    askText: (n: number) =>
      `This permanently deletes ${count(n, { one: "item", other: "items" })}. You can’t undo this.`,
    kinds: {
      conversation: "Chat",
      message: "Message",
      character: "Character",
      persona: "Persona",
      workflow: "Workflow",
      voice: "Voice",
      lorebook: "Lorebook",
      memory: "Note",
      document: "Document",
      preset: "Preset",
      attachment: "Image or recording",
    },
  },
};
