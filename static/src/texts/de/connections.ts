/** Connections to language models: their list, their state. */
import type { connections as English } from "../en/connections.ts";
import { counter } from "../plural.ts";

const count = counter("de");

/** German. */
export const connections: typeof English = {
  connection: {
    untested: "Noch nicht geprüft",
    refused: "Antwortet, verweigert aber den Zugang",
    none: "Kein Modell verbunden",
    checking: "Das Modell wird gesucht",
    ready: "Bereit",
    away: "Nicht erreichbar",
    demo: "Vorführung",
  },

  connections: {
    searchAgain: "Noch einmal suchen",
    testAll: "Alle prüfen",
    hasKey: "Schlüssel gespeichert",
    intro: "Woher die Antworten kommen. Es ist immer eine Verbindung in Gebrauch.",
    add: "Verbindung hinzufügen",
    discover: "Server suchen",
    searching: "Server werden gesucht",
    found: "Gefundene Server",
    noneFound: "Kein Server gefunden",
    noneFoundAdvice:
      "Starten Sie einen, etwa llama.cpp, Ollama oder LM Studio, und suchen Sie noch einmal; oder geben Sie die Adresse von Hand ein.",
    discoverFailed: "Die Suche ist fehlgeschlagen",
    addAndUse: "Hinzufügen und verwenden",
    use: "Verwenden",
    inUse: "In Gebrauch",
    activated: (name: string) => `Ab jetzt antwortet „${name}“`,
    saved: "Verbindung gespeichert",
    removed: "Verbindung gelöscht",
    remove: "Löschen",
    edit: "Bearbeiten",
    test: "Prüfen",
    testing: "Wird geprüft",
    models: (n: number) => count(n, { one: "Modell", other: "Modelle" }),
    starting: "Startet noch",
    needsKey: "Braucht einen Schlüssel",
    none: "Noch keine Verbindung",
    noneText: "Suchen Sie einen Server auf diesem Rechner, oder geben Sie eine Adresse von Hand ein.",
    loadFailed: "Die Verbindungen konnten nicht geladen werden",
    kinds: { openai: "OpenAI-kompatibel", anthropic: "Anthropic", demo: "Vorführung" },
    demoNote: "Antwortet von selbst, Wort für Wort. Kein Sprachmodell.",
    unreadable: "Der gespeicherte Eintrag lässt sich nicht lesen. Löschen Sie ihn und legen Sie die Verbindung neu an.",
    noModel: "Erstes Modell, das der Server anbietet",
  },
};
