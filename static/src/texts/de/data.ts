/** Texts of the settings pages data, about and trash. */
import type { data as English } from "../en/data.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const data: typeof English = {
  about: {
    version: "Version",
    text: "Parlor läuft auf Ihrem eigenen Rechner. Diese Seite lädt nichts von anderen Servern.",
    licence:
      "Parlor ist freie Software unter der MIT-Lizenz. Enthaltene Open-Source-Pakete haben ihre eigenen Lizenzen.",
    findings: "Systemprüfung",
    findingsFailed: "Die Systemprüfung konnte nicht ausgeführt werden",
    checking: "Wird geprüft",
    checkAgain: "Erneut prüfen",
    wrong: (n: number) =>
      n === 0 ? "Keine Probleme gefunden." : `${count(n, { one: "Problem", other: "Probleme" })} gefunden.`,
    levels: { ok: "OK", note: "Hinweis", problem: "Problem" },
  },

  data: {
    title: "Daten",
    failed: "Der Speicherbedarf konnte nicht ermittelt werden",
    space: "Speicherplatz",
    total: (size: string) => `${size} insgesamt belegt.`,
    uses: {
      chats: "Chats und Einstellungen",
      characters: "Figuren",
      attachments: "Bilder und Aufnahmen in Chats",
      documents: "Dokumente",
      models: "Modelle",
      voices: "Stimmproben",
      rest: "Sonstiges",
    },
    backups: "Sicherungen",
    noneYet: "Noch keine Sicherungen.",
    byHand: "So sichern Sie bei laufendem Server über die Kommandozeile:",
    key:
      "Zum Wiederherstellen einer Sicherung brauchen Sie den Speicherschlüssel. Bewahren Sie eine Kopie anderswo auf: parlor key export.",
  },

  trash: {
    title: "Papierkorb",
    intro: "Gelöschtes bleibt sieben Tage hier.",
    failed: "Der Papierkorb konnte nicht geladen werden",
    noneTitle: "Der Papierkorb ist leer",
    noneText: "Hier ist nichts zu tun. Gelöschtes lässt sich sieben Tage lang wiederherstellen.",
    untitled: "Ohne Titel",
    removedAt: (when: string) => `gelöscht: ${when}`,
    restore: "Wiederherstellen",
    restoreIt: (title: string) => `„${title}“ wiederherstellen`,
    restored: (title: string) => `„${title}“ wiederhergestellt`,
    empty: "Papierkorb leeren",
    emptied: "Papierkorb geleert",
    askTitle: "Papierkorb leeren?",
    askText: (n: number) =>
      `${
        count(n, { one: "Element wird", other: "Elemente werden" })
      } endgültig gelöscht. Das kann nicht rückgängig gemacht werden.`,
    kinds: {
      conversation: "Chat",
      message: "Nachricht",
      character: "Figur",
      persona: "Persona",
      workflow: "Workflow",
      voice: "Stimme",
      lorebook: "Lorebook",
      memory: "Notiz",
      document: "Dokument",
      preset: "Preset",
      attachment: "Bild oder Aufnahme",
    },
  },
};
