/** What the owner looks after: data, backups, the installation. */
import type { upkeep as English } from "../en/upkeep.ts";
import { counter } from "../plural.ts";

const count = counter("de");

/** German. */
export const upkeep: typeof English = {
  about: {
    version: "Version",
    text: "Parlor läuft auf Ihrem eigenen Rechner. Diese Seite lädt nichts von anderswo.",
    licence:
      "Parlor ist freie Software unter der MIT-Lizenz. Wessen Arbeit darin steckt und zu welchen Bedingungen, steht hier.",
    findings: "Zustand der Installation",
    findingsFailed: "Die Installation konnte nicht geprüft werden",
    looking: "Wird geprüft",
    lookAgain: "Noch einmal prüfen",
    wrong: (n: number) =>
      n === 0 ? "Alles ist in Ordnung." : `${count(n, { one: "Sache", other: "Sachen" })} zu beheben.`,
    levels: { ok: "In Ordnung", note: "Zur Kenntnis", problem: "Nicht in Ordnung" },
  },

  data: {
    title: "Daten",
    failed: "Die Daten konnten nicht gemessen werden",
    space: "Belegter Platz",
    total: (size: string) => `${size} insgesamt.`,
    uses: {
      chats: "Chats und Einstellungen",
      characters: "Figuren",
      attachments: "Bilder in Chats",
      models: "Modelle",
      voices: "Stimmproben",
      rest: "Alles Übrige",
    },
    backups: "Sicherungen",
    noBackups: "Es wird nichts von selbst gesichert",
    noBackupsText:
      "Setzen Sie backup_dir auf einen Ordner einer anderen Platte, und jeden Tag entsteht eine Sicherung.",
    daily: (folder: string, keep: number) => `Eine am Tag in ${folder}; die neuesten ${keep} bleiben.`,
    noneYet: "Noch ist keine da. Die erste entsteht bald nach dem Start; Vorgänge zeigt sie.",
    byHand: "Von Hand, neben dem laufenden Server:",
    key:
      "Eine Sicherung öffnet sich mit dem Speicherschlüssel. Heben Sie eine Kopie davon anderswo auf: parlor key export.",
  },
};
