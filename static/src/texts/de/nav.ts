/** The sidebar and the list of chats. */
import type { nav as English } from "../en/nav.ts";
import { counter } from "../plural.ts";

const count = counter("de");

/** German. */
export const nav: typeof English = {
  nav: {
    label: "Chats und Einstellungen",
    open: "Liste der Chats öffnen",
    fold: "Seitenleiste ausblenden",
    unfold: "Seitenleiste einblenden",
    characters: "Figuren",
    newChat: "Neuer Chat",
    chats: "Chats",
    settings: "Einstellungen",
    today: "Heute",
    yesterday: "Gestern",
    thisWeek: "Diese Woche",
    none: "Hier erscheinen Ihre Chats.",
    untitled: "Ohne Titel",
    failed: "Die Liste der Chats konnte nicht geladen werden",
    answering: "Eine Antwort wird geschrieben",
    replyEnded: "Die Antwort ist zu Ende",
    search: "Suche",
    activity: "Aktivität",
    runningCount: (n: number) => `, ${n} laufend`,
    pinned: "Angeheftet",
    chatCount: (n: number) => count(n, { one: "Chat", other: "Chats" }),
    menu: (title: string) => `Aktionen für „${title}“`,
    rename: "Umbenennen",
    pin: "Anheften",
    unpin: "Lösen",
    file: "In einen Ordner legen",
    delete: "Löschen",
    renameTitle: "Chat umbenennen",
    titleLabel: "Titel",
    fileTitle: "Chat in einen Ordner legen",
    folderLabel: "Ordner",
    folderHint: "Ein neuer Name macht einen neuen Ordner. Ein Ordner geht mit seinem letzten Chat.",
    unfile: "Herausnehmen",
    removed: "Chat gelöscht",
    skip: "Zum Gespräch springen",
  },
};
