/** What the owner looks after: data, backups, the installation. */
import { counter } from "../plural.ts";

const count = counter("en");

/** English. */
export const upkeep = {
  about: {
    version: "Version",
    text: "Parlor runs on your own machine. This page loads nothing from anywhere else.",
    licence: "Parlor is free software under the MIT licence. Whose work is inside, and under which terms, stands here.",
    findings: "State of the installation",
    findingsFailed: "The installation could not be looked at",
    looking: "Looking",
    lookAgain: "Look again",
    wrong: (n: number) =>
      n === 0 ? "Nothing is wrong." : `${count(n, { one: "thing", other: "things" })} to put right.`,
    levels: { ok: "Fine", note: "To know", problem: "Wrong" },
  },

  data: {
    title: "Data",
    failed: "The data could not be measured",
    space: "Space used",
    total: (size: string) => `${size} in all.`,
    uses: {
      chats: "Chats and settings",
      characters: "Characters",
      attachments: "Pictures in chats",
      models: "Models",
      voices: "Voice samples",
      rest: "Everything else",
    },
    backups: "Backups",
    noBackups: "No backups are made by themselves",
    noBackupsText: "Set backup_dir to a folder on another disk, and one is made every day.",
    daily: (folder: string, keep: number) => `One a day in ${folder}; the newest ${keep} are kept.`,
    noneYet: "None is there yet. The first one is made soon after the start; Activity shows it.",
    byHand: "By hand, beside the running server:",
    key: "A backup opens with the storage key. Keep a copy of that somewhere else: parlor key export.",
  },
};
