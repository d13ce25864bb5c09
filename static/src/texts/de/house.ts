/** Search, what runs, the trash. */
import type { house as English } from "../en/house.ts";
import { counter } from "../plural.ts";

const count = counter("de");

/** German. */
export const house: typeof English = {
  search: {
    title: "Suche",
    label: "Alle Chats durchsuchen",
    placeholder: "Wörter, oder ein „Satz“ in Anführungszeichen",
    searching: "Wird gesucht",
    count: (n: number) => count(n, { other: "Treffer" }),
    atLeast: (n: number) => `Bisher ${count(n, { other: "Treffer" })}`,
    hits: "Treffer",
    inTitle: "Titel",
    failed: "Die Suche ist fehlgeschlagen",
    emptyTitle: "Wiederfinden, was gesagt wurde",
    emptyText: "Alle Chats werden beim Tippen durchsucht. Ein Treffer führt zu seiner Nachricht.",
    noneTitle: "Nichts gefunden",
    noneText: "Kein Chat enthält alle diese Wörter. Versuchen Sie es mit weniger.",
  },

  activity: {
    title: "Aktivität",
    running: "Läuft",
    ended: "Kürzlich beendet",
    failed: "Was läuft, konnte nicht gelesen werden",
    noneTitle: "Nichts läuft",
    noneText:
      "Antworten, Downloads, Importe und andere lange Arbeiten erscheinen hier. Sie laufen weiter, wenn Sie gehen.",
    reply: (clock: string) => `Antwort, ${clock}`,
    stop: "Anhalten",
    stopReply: (title: string) => `Antwort in „${title}“ anhalten`,
    cancelJob: (title: string) => `„${title}“ abbrechen`,
    of: (done: string, total: string) => `${done} von ${total}`,
    units: { steps: "Schritten", files: "Dateien", items: "Einträgen", images: "Bildern", letters: "Zeichen" },
    states: {
      queued: "Wartet",
      running: "Läuft",
      verifying: "Wird geprüft",
      done: "Fertig",
      failed: "Fehlgeschlagen",
      cancelled: "Abgebrochen",
    },
  },

  trash: {
    title: "Papierkorb",
    intro: "Gelöschtes bleibt hier sieben Tage.",
    failed: "Der Papierkorb konnte nicht gelesen werden",
    noneTitle: "Der Papierkorb ist leer",
    noneText: "Gelöschte Chats und Nachrichten lassen sich von hier zurückholen.",
    untitled: "Ohne Titel",
    removedAt: (when: string) => `gelöscht: ${when}`,
    restore: "Zurückholen",
    restoreIt: (title: string) => `„${title}“ zurückholen`,
    restored: (title: string) => `„${title}“ ist wieder da`,
    empty: "Papierkorb leeren",
    emptied: "Der Papierkorb ist leer",
    askTitle: "Papierkorb leeren?",
    askText: (n: number) =>
      `${
        count(n, { one: "Eintrag wird", other: "Einträge werden" })
      } endgültig gelöscht. Das lässt sich nicht rückgängig machen.`,
    kinds: {
      conversation: "Chat",
      message: "Nachricht",
      character: "Figur",
      persona: "Persona",
      workflow: "Workflow",
      voice: "Stimme",
      lorebook: "Lorebook",
      preset: "Preset",
      attachment: "Bild",
    },
  },
};
