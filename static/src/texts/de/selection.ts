/** Texts of selecting several items in a list. */
import type { selection as english } from "../en/selection.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const selection: typeof english = {
  selection: {
    label: "Auswahl",
    end: "Auswahl beenden",
    all: "Alle auswählen",
    export: "Exportieren",
    count: (n: number) => `${n} ausgewählt`,
    fileChats: (n: number) => `${count(n, { one: "Chat", other: "Chats" })} in Ordner verschieben`,
    chatsRemoved: (n: number) => `${count(n, { one: "Chat", other: "Chats" })} gelöscht`,
    chatsFiled: (n: number) => `${count(n, { one: "Chat", other: "Chats" })} verschoben`,
    chatsPinned: (n: number) => `${count(n, { one: "Chat", other: "Chats" })} angeheftet`,
    chatsUnpinned: (n: number) => `${count(n, { one: "Chat", other: "Chats" })} nicht mehr angeheftet`,
    fileCharacters: (n: number) => `${count(n, { one: "Figur", other: "Figuren" })} in Ordner verschieben`,
    charactersFiled: (n: number) => `${count(n, { one: "Figur", other: "Figuren" })} verschoben`,
    charactersRemoved: (n: number) => `${count(n, { one: "Figur", other: "Figuren" })} gelöscht`,
    favored: (n: number) => `${count(n, { one: "Figur", other: "Figuren" })} zu den Favoriten hinzugefügt`,
    unfavored: (n: number) => `${count(n, { one: "Figur", other: "Figuren" })} aus den Favoriten entfernt`,
    favorite: "Zu den Favoriten",
    unfavorite: "Aus den Favoriten entfernen",
  },
};
