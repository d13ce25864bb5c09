/** The command palette and the overview of keys. */
import type { palette as English } from "../en/palette.ts";

/** German. */
export const palette: typeof English = {
  palette: {
    title: "Befehle",
    placeholder: "Ein Chat, ein Befehl, eine Einstellung",
    recent: "Letzte Chats",
    commands: "Befehle",
    searchFor: (query: string) => `Alle Chats nach „${query}“ durchsuchen`,
    light: "Helle Farben",
    dark: "Dunkle Farben",
    system: "Farben wie das System",
  },

  shortcuts: {
    title: "Tastenkürzel",
    everywhere: "Überall",
    inChat: "In einem Chat",
    inLists: "In Listen und Menüs",
    escape: "Die Antwort anhalten, dann Offenes schließen",
    send: "Nachricht senden",
    line: "Zeile umbrechen",
    editLast: "Im leeren Eingabefeld: die letzte eigene Nachricht bearbeiten",
    commands: "Im leeren Eingabefeld: Befehle",
    variants: "Andere Fassungen der letzten Antwort",
    find: "In diesem Chat suchen",
    step: "Eine Zeile vor oder zurück",
    ends: "Erste und letzte Zeile",
  },
};
