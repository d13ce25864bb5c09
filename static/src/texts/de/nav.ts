/** Texts of the sidebar and the chat list. */
import type { nav as English } from "../en/nav.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const nav: typeof English = {
  nav: {
    label: "Chats und Einstellungen",
    open: "Chatliste öffnen",
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
    failed: "Die Chats konnten nicht geladen werden",
    answering: "Antwort wird geschrieben",
    replyEnded: "Antwort fertig",
    search: "Suche",
    activity: "Aktivität",
    runningCount: (n: number) => `, ${n} laufend`,
    branch: "Zweig",
    waitingCalls: (n: number) => count(n, { one: "Freigabe offen", other: "Freigaben offen" }),
    pinned: "Angeheftet",
    chatCount: (n: number) => count(n, { one: "Chat", other: "Chats" }),
    menu: (title: string) => `Aktionen für „${title}“`,
    select: "Auswählen",
    rename: "Umbenennen",
    pin: "Anheften",
    unpin: "Lösen",
    file: "In Ordner verschieben",
    exportAs: (format: string) => `Als ${format} exportieren`,
    delete: "Löschen",
    renameTitle: "Chat umbenennen",
    titleLabel: "Titel",
    fileTitle: "Chat in Ordner verschieben",
    folderLabel: "Ordner",
    folderHint: "Ein neuer Name legt einen Ordner an. Leere Ordner verschwinden.",
    removeFromFolder: "Aus dem Ordner entfernen",
    removed: "Chat gelöscht",
    skip: "Zum Chat springen",
  },
  home: {
    continue: "Weiter im Chat",
    all: "Alle Figuren",
    addCharacter: "Figur hinzufügen",
    starters: "Starthilfen",
    starterTexts: [
      { label: "Etwas erklären", text: "Erkläre mir das in einfachen Worten, mit einem Beispiel: " },
      {
        label: "Text verbessern",
        text: "Verbessere diesen Text. Behalte Sinn und Ton bei und liste auf, was du geändert hast:\n\n",
      },
      { label: "Etwas planen", text: "Hilf mir, das zu planen. Frag mich zuerst, was du wissen musst: " },
    ],
    replies: (n: number) => count(n, { one: "Antwort läuft", other: "Antworten laufen" }),
    show: "Anzeigen",
  },
};
