/** The settings, but for connections. */
import { counter } from "../plural.ts";

const count = counter("en");

/** English. */
export const settings = {
  settings: {
    search: "Search the settings",
    found: "Found settings",
    foundNone: "No setting has these words.",
    foundCount: (n: number) => count(n, { one: "setting", other: "settings" }),
    title: "Settings",
    sections: "Sections",
    general: "General",
    connections: "Connections",
    about: "About",
    back: "Back to the chat",
  },

  general: {
    displayName: "Your name",
    displayNameHint: "How characters and models may address you.",
    chats: "Chats",
    sendOnEnter: "Enter sends the message",
    sendOnEnterHint: "Shift with Enter breaks the line. Switched off, it is the other way round.",
    autoTitle: "Name chats by themselves",
    autoTitleHint: "The model is asked for a title when it has nothing else to do.",
    notify: "Notify when a reply ends",
    notifyHint: "On this device, while the page is out of sight. The browser asks once.",
    notifyRefused: "The browser refused. Allow notifications for this page in its own settings.",
    notifyImpossible: "This browser allows notifications only over HTTPS or on localhost.",
    look: "Appearance",
    note: "These follow you to every device.",
    language: "Language",
    languageHint: "Of this page. Models answer in the language they are written to.",
    languageAuto: "Same as the browser",
    theme: "Theme",
    themes: { system: "Same as the system", light: "Light", dark: "Dark" },
    size: "Text size",
    percent: (n: number) => `${n} %`,
    reading: "Typeface for reading",
    sans: "Without serifs",
    serif: "With serifs",
    hue: "Accent colour",
    sample: "The quick brown fox jumps over the lazy dog, and the evening reads on.",
  },
};
