/** Texts of the command palette and the keyboard shortcuts. */
import type { palette as English } from "../en/palette.ts";

/** German. */
export const palette: typeof English = {
  palette: {
    title: "Befehle",
    placeholder: "Chats, Befehle und Einstellungen suchen",
    recent: "Letzte Chats",
    commands: "Befehle",
    searchFor: (query: string) => `Alle Chats nach „${query}“ durchsuchen`,
    light: "Helles Farbschema",
    dark: "Dunkles Farbschema",
    system: "Farbschema des Systems",
  },

  shortcuts: {
    title: "Tastenkürzel",
    everywhere: "Überall",
    inChat: "In einem Chat",
    inLists: "In Listen und Menüs",
    escape: "Antwort stoppen, dann Offenes schließen",
    send: "Nachricht senden",
    line: "Neue Zeile",
    editLast: "Letzte eigene Nachricht bearbeiten (im leeren Eingabefeld)",
    commands: "Befehle anzeigen (im leeren Eingabefeld)",
    variants: "Andere Versionen der letzten Antwort",
    find: "In diesem Chat suchen",
    step: "Vorige oder nächste Zeile",
    ends: "Erste oder letzte Zeile",
  },
};
