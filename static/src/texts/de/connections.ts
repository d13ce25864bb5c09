/** Texts of the list of connections and their state. */
import type { connections as English } from "../en/connections.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

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

  connections: {
    searchAgain: "Erneut suchen",
    testAll: "Alle testen",
    hasKey: "Schlüssel gespeichert",
    intro:
      "Server und Dienste, auf denen Ihre Modelle laufen. Chats verwenden die aktive Verbindung, sofern Sie keine andere wählen.",
    add: "Verbindung hinzufügen",
    discover: "Server suchen",
    searching: "Server werden gesucht",
    found: "Gefundene Server",
    noneFound: "Keine Server gefunden",
    noneFoundAdvice:
      "Starten Sie einen, etwa llama.cpp, Ollama oder LM Studio, und suchen Sie erneut. Oder geben Sie seine URL ein.",
    discoverFailed: "Suche fehlgeschlagen",
    addAndUse: "Hinzufügen und verwenden",
    use: "Verwenden",
    inUse: "In Verwendung",
    activated: (name: string) => `„${name}“ wird jetzt verwendet`,
    saved: "Verbindung gespeichert",
    removed: "Verbindung gelöscht",
    remove: "Löschen",
    edit: "Bearbeiten",
    test: "Testen",
    testing: "Wird getestet",
    models: (n: number) => count(n, { one: "Modell", other: "Modelle" }),
    starting: "Startet noch",
    needsKey: "Schlüssel erforderlich",
    none: "Noch keine Verbindungen",
    noneText: "Suchen Sie einen Server auf diesem Rechner oder geben Sie eine URL ein.",
    loadFailed: "Die Verbindungen konnten nicht geladen werden",
    kinds: {
      openai: "OpenAI-kompatibel",
      "openai-responses": "OpenAI Responses",
      ollama: "Ollama",
      anthropic: "Anthropic",
      demo: "Demo",
    },
    demoNote: "Eingebaute Beispielantworten. Kein Sprachmodell.",
    unreadable: "Diese Verbindung kann nicht gelesen werden. Löschen Sie sie und fügen Sie sie neu hinzu.",
    noModel: "Erstes Modell des Servers",
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
