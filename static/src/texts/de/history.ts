/** Texts of earlier versions of characters, personas, workflows and voices. */
import type { Texts } from "../en/en.ts";

/** German. */
export const history: Pick<Texts, "history"> = {
  history: {
    open: "Frühere Versionen",
    title: (name) => `Frühere Versionen: ${name}`,
    intro: "Jede Änderung sichert die vorige Version: bis zu 50 Versionen, 30 Tage lang.",
    failed: "Frühere Versionen konnten nicht geladen werden",
    none: "Noch keine früheren Versionen. Die erste Änderung legt eine an.",
    restore: "Wiederherstellen",
    restoreFailed: "Diese Version konnte nicht wiederhergestellt werden",
    restoreOf: (moment) => `Version wiederherstellen, die am ${moment} ersetzt wurde`,
    restored: (name) => `${name} wiederhergestellt`,
    same: "Der Text ist unverändert.",
    causes: {
      put: "Gespeichert",
      patch: "Gespeichert",
      avatar: "Bild ersetzt",
      portrait: "Porträt generiert",
      restore: "Frühere Version wiederhergestellt",
    },
    portraitDrawn: "Porträt generiert",
    exportTooLarge:
      "Diese Datei ist größer als das Importlimit von Parlor. Andere Programme können sie vielleicht öffnen, Parlor importiert sie nicht.",
  },
};
