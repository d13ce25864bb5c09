/** Texts of the general settings. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const settings = {
  settings: {
    search: "Search settings",
    found: "Matching settings",
    foundNone: "No settings match.",
    foundCount: (n: number) => count(n, { one: "setting", other: "settings" }),
    title: "Settings",
    sections: "Sections",
    general: "General",
    connections: "Connections",
    about: "About",
    back: "Back to chat",
  },

  general: {
    displayName: "Your name",
    displayNameHint: "What characters and models can call you.",
    chats: "Chats",
    sendOnEnter: "Press Enter to send",
    sendOnEnterHint: "Shift+Enter adds a new line. When this is off, it’s the other way around.",
    autoTitle: "Name chats automatically",
    autoTitleHint: "Asks the model for a title when it’s idle.",
    notify: "Notify me when a reply finishes",
    notifyHint: "On this device, when Parlor is in the background. Your browser asks for permission once.",
    notifyRefused: "Your browser blocked notifications. Allow them for this site in your browser settings.",
    notifyImpossible: "This browser allows notifications only over HTTPS or on localhost.",
    look: "Appearance",
    note: "These settings sync to all your devices.",
    language: "Language",
    languageHint: "For this page only. Models reply in the language you write in.",
    languageAuto: "Browser default",
    theme: "Theme",
    themes: { system: "System", light: "Light", dark: "Dark" },
    size: "Text size",
    percent: (n: number) => `${n}%`,
    reading: "Font",
    sans: "Sans serif",
    serif: "Serif",
    hue: "Accent color",
    sample: "The quick brown fox jumps over the lazy dog while the evening settles in.",
  },
};
