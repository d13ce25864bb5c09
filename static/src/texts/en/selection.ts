/** Texts of selecting several items in a list. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const selection = {
  selection: {
    label: "Selected items",
    end: "Stop selecting",
    all: "Select all",
    export: "Export",
    count: (n: number) => `${n} selected`,
    fileChats: (n: number) => `Move ${count(n, { one: "chat", other: "chats" })} to folder`,
    chatsRemoved: (n: number) => `${count(n, { one: "chat", other: "chats" })} deleted`,
    chatsFiled: (n: number) => `${count(n, { one: "chat", other: "chats" })} moved`,
    chatsPinned: (n: number) => `${count(n, { one: "chat", other: "chats" })} pinned`,
    chatsUnpinned: (n: number) => `${count(n, { one: "chat", other: "chats" })} unpinned`,
    fileCharacters: (n: number) => `Move ${count(n, { one: "character", other: "characters" })} to folder`,
    charactersFiled: (n: number) => `${count(n, { one: "character", other: "characters" })} moved`,
    charactersRemoved: (n: number) => `${count(n, { one: "character", other: "characters" })} deleted`,
    favored: (n: number) => `${count(n, { one: "character", other: "characters" })} added to favorites`,
    unfavored: (n: number) => `${count(n, { one: "character", other: "characters" })} removed from favorites`,
    favorite: "Add to favorites",
    unfavorite: "Remove from favorites",
  },
};
