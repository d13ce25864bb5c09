/** Texts of the list of connections and their state. */
import type { connections as English } from "../en/connections.ts";

/** German. */
export const connections: typeof English = {
  connection: {
    none: "Kein Modell verbunden",
    checking: "Modell wird geprüft",
    away: "Nicht erreichbar",
    demo: "Demo",
    states: {
      unknown: "Noch nicht getestet",
      running: "Modell wird geprüft",
      good: "Bereit",
      bad: "Nicht erreichbar",
      refused: "Zugriff verweigert",
      starting: "Modell wird geladen",
      busy: "Ausgelastet",
      failing: "Letzte Antwort fehlgeschlagen",
    },
  },

  firstRun: {
    title: "Sprachmodell verbinden",
    text:
      "Derzeit kommen Antworten von der eingebauten Demo, die kein Sprachmodell ist. Parlor kann auf diesem Rechner nach einem Modell suchen.",
    find: "Modell suchen",
    manual: "URL eingeben",
    later: "Jetzt nicht",
  },
};
