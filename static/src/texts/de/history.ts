/** Frühere Fassungen von Figuren, Personas, Workflows und Stimmen. */
import type { Texts } from "../en/en.ts";

/** German. */
export const history: Pick<Texts, "history"> = {
  history: {
    open: "Frühere Fassungen",
    title: (name) => `Frühere Fassungen: ${name}`,
    intro: "Jede Änderung speichert, was sie ersetzt: bis zu 50 Fassungen, 30 Tage lang.",
    failed: "Die früheren Fassungen konnten nicht geladen werden",
    none: "Noch keine früheren Fassungen. Die erste Änderung erzeugt eine.",
    restore: "Wiederherstellen",
    restoreFailed: "Die Fassung konnte nicht wiederhergestellt werden",
    restoreOf: (moment) => `Die Fassung wiederherstellen, die am ${moment} ersetzt wurde`,
    restored: (name) => `${name} wiederhergestellt`,
    same: "Der Text ist derselbe wie jetzt.",
    causes: {
      put: "Gespeichert",
      patch: "Gespeichert",
      avatar: "Bild ersetzt",
      portrait: "Porträt gezeichnet",
      restore: "Frühere Fassung wiederhergestellt",
    },
    portraitDrawn: "Porträt gezeichnet",
    exportTooLarge:
      "Diese Datei ist größer, als Parlor beim Import annimmt. Andere Programme können sie vielleicht öffnen.",
  },
};
