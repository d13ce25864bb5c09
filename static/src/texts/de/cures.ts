/** Texts of what helps after a failed reply. */
import type { cures as English } from "../en/cures.ts";

/** German. */
export const cures: typeof English = {
  cures: {
    keyHint: (connection: string) => `Wird für „${connection}“ verschlüsselt gespeichert und nie wieder angezeigt.`,
    saveKey: "Schlüssel speichern und erneut versuchen",
    model: "Modell für diesen Chat",
    useModel: "Verwenden und erneut versuchen",
    noModels: (connection: string) => `„${connection}“ listet keine Modelle auf`,
    download: (model: string) => `„${model}“ herunterladen`,
    downloading: (model: string) => `„${model}“ wird heruntergeladen`,
    downloadingThenRetry: (model: string) =>
      `„${model}“ wird heruntergeladen. Danach wird die Nachricht erneut gesendet.`,
    retryWhenDownloaded: "Danach erneut versuchen",
    downloadFailed: (model: string) => `„${model}“ konnte nicht heruntergeladen werden`,
    waiting: (connection: string) => `Sobald „${connection}“ antwortet, wird die Antwort erneut angefordert.`,
    stopWaiting: "Nicht mehr warten",
    edit: "Verbindung bearbeiten",
    summary: "Mit einer Zusammenfassung beginnen",
    dropOldest: "Älteste Nachrichten weglassen",
    shorter: (tokens: string) => `Antworten auf ${tokens} Token begrenzen`,
    summarizing: "Ältere Nachrichten werden zusammengefasst",
    dropped: (tokens: string) =>
      `Dieser Chat sendet jetzt höchstens ${tokens} Token. Die Grenze steht in seinen Optionen.`,
    nothingToDrop: "Es gibt nichts Älteres zum Weglassen. Kürzen Sie Ihre letzte Nachricht oder den Systemprompt.",
    noSummary: "Das Modell hat keine Zusammenfassung geschrieben",
  },
};
