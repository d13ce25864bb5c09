/** The settings, but for connections. */
import type { settings as English } from "../en/settings.ts";
import { counter } from "../plural.ts";

const count = counter("de");

/** German. */
export const settings: typeof English = {
  settings: {
    search: "Einstellungen durchsuchen",
    found: "Gefundene Einstellungen",
    foundNone: "Keine Einstellung enthält diese Wörter.",
    foundCount: (n: number) => count(n, { one: "Einstellung", other: "Einstellungen" }),
    title: "Einstellungen",
    sections: "Bereiche",
    general: "Allgemein",
    connections: "Verbindungen",
    about: "Über Parlor",
    back: "Zurück zum Chat",
  },

  general: {
    displayName: "Ihr Name",
    displayNameHint: "Wie Figuren und Modelle Sie ansprechen können.",
    chats: "Chats",
    sendOnEnter: "Eingabetaste sendet die Nachricht",
    sendOnEnterHint: "Umschalt mit Eingabe bricht die Zeile um. Ausgeschaltet ist es umgekehrt.",
    autoTitle: "Chats von selbst benennen",
    autoTitleHint: "Das Modell wird nach einem Titel gefragt, wenn es sonst nichts zu tun hat.",
    notify: "Melden, wenn eine Antwort fertig ist",
    notifyHint: "Auf diesem Gerät, solange die Seite nicht zu sehen ist. Der Browser fragt einmal.",
    notifyRefused:
      "Der Browser hat abgelehnt. Erlauben Sie Benachrichtigungen für diese Seite in seinen Einstellungen.",
    notifyImpossible: "Dieser Browser erlaubt Benachrichtigungen nur über HTTPS oder auf localhost.",
    look: "Aussehen",
    note: "Gilt auf allen Ihren Geräten.",
    language: "Sprache",
    languageHint: "Sprache dieser Seite. Modelle antworten in der Sprache, in der man ihnen schreibt.",
    languageAuto: "Wie der Browser",
    theme: "Farben",
    themes: { system: "Wie das System", light: "Hell", dark: "Dunkel" },
    size: "Schriftgröße",
    percent: (n: number) => `${n} %`,
    reading: "Schrift zum Lesen",
    sans: "Ohne Serifen",
    serif: "Mit Serifen",
    hue: "Akzentfarbe",
    sample: "Falsches Üben von Xylophonmusik quält jeden größeren Zwerg, und der Abend liest sich weiter.",
  },
};
