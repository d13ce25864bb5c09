/** Texts of the general settings. */
import type { settings as English } from "../en/settings.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const settings: typeof English = {
  settings: {
    search: "Einstellungen durchsuchen",
    found: "Passende Einstellungen",
    foundNone: "Keine passenden Einstellungen.",
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
    displayNameHint: "So können Figuren und Modelle Sie ansprechen.",
    chats: "Chats",
    sendOnEnter: "Mit der Eingabetaste senden",
    sendOnEnterHint: "Umschalt+Eingabe fügt eine neue Zeile ein. Ist die Option aus, ist es umgekehrt.",
    autoTitle: "Chats automatisch benennen",
    autoTitleHint: "Fragt das Modell nach einem Titel, wenn es nichts zu tun hat.",
    notify: "Benachrichtigen, wenn eine Antwort fertig ist",
    notifyHint: "Auf diesem Gerät, wenn Parlor im Hintergrund ist. Der Browser fragt einmal um Erlaubnis.",
    notifyRefused:
      "Ihr Browser hat die Benachrichtigungen blockiert. Erlauben Sie sie für diese Seite in den Browsereinstellungen.",
    notifyImpossible: "Dieser Browser erlaubt Benachrichtigungen nur über HTTPS oder auf localhost.",
    look: "Darstellung",
    note: "Diese Einstellungen gelten auf allen Ihren Geräten.",
    language: "Sprache",
    languageHint: "Nur für diese Seite. Modelle antworten in der Sprache, in der Sie schreiben.",
    languageAuto: "Wie im Browser",
    theme: "Farbschema",
    themes: { system: "System", light: "Hell", dark: "Dunkel" },
    size: "Schriftgröße",
    percent: (n: number) => `${n} %`,
    reading: "Schriftart",
    sans: "Serifenlos",
    serif: "Mit Serifen",
    hue: "Akzentfarbe",
    sample: "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich, während es Abend wird.",
  },
};
