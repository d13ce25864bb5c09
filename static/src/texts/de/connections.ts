/** Connections to language models: their list, their form, their state. */
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

  firstRun: {
    title: "Ein Sprachmodell verbinden",
    text:
      "Bisher antwortet nur die eingebaute Vorführung, und die ist kein Sprachmodell. Parlor kann nach einem suchen, das auf diesem Rechner läuft.",
    find: "Modell suchen",
    manual: "Adresse eingeben",
    later: "Jetzt nicht",
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

  form: {
    nearby: "Auf diesem Rechner gefunden",
    byHand: "Ein anderer Server oder Dienst",
    presets: "Vorschläge",
    keyNeeded: "Dieser Dienst verlangt einen Schlüssel. Er wird versiegelt gespeichert und nie wieder angezeigt.",
    keyShow: "Eingabe zeigen",
    keyHide: "Eingabe verbergen",
    keyExposed:
      "Diese Adresse ist unverschlüsselt: Der Schlüssel kann unterwegs gelesen werden. Nehmen Sie https://, wenn der Server es anbietet.",
    modelOffered: (n: number) =>
      `Leer lassen, um das erste von ${
        count(n, { one: "angebotenen Modell", other: "angebotenen Modellen" })
      } zu nehmen.`,
    contextKnown: (tokens: string) => `In Token. Bleibt das Feld leer, gelten die ${tokens}, die der Server nennt.`,
    addTitle: "Verbindung hinzufügen",
    editTitle: "Verbindung bearbeiten",
    missing: "Diese Verbindung gibt es nicht",
    name: "Name",
    kind: "Art",
    url: "Adresse",
    urlHint: "Zum Beispiel http://127.0.0.1:8080; wo /v1 fehlt, wird es ergänzt.",
    key: "API-Schlüssel",
    keyHint: "Nur für Server, die einen verlangen. Er wird versiegelt gespeichert und nie wieder angezeigt.",
    keySaved: "Ein Schlüssel ist gespeichert. Lassen Sie das Feld leer, um ihn zu behalten.",
    keyMoved:
      "Der gespeicherte Schlüssel gehört zu einer anderen Adresse und geht nicht mit. Geben Sie ihn noch einmal ein, wenn die neue einen braucht.",
    keyClear: "Gespeicherten Schlüssel entfernen",
    keyCleared: "Schlüssel entfernt",
    model: "Modell",
    modelHint: "Leer lassen, um das erste zu nehmen, das der Server anbietet.",
    context: "Kontextgröße",
    contextHint: "In Token. Leer lassen, um den Server zu fragen.",
    contextBad: "Eine ganze Zahl von Token, etwa 8192",
    urlBad: "Eine Adresse, die mit http:// oder https:// beginnt",
    save: "Speichern",
    saveAndUse: "Speichern und verwenden",
    saveFailed: "Die Verbindung konnte nicht gespeichert werden",
    testFailed: "Die Prüfung war nicht möglich",
  },

  verdict: {
    good: "Die Verbindung funktioniert",
    bad: "Die Verbindung funktioniert nicht",
    reachable: "Server antwortet",
    unreachable: "Server antwortet nicht",
    authorized: "Zugang gewährt",
    unauthorized: "Zugang verweigert",
    models: (n: number) => count(n, { one: "Modell angeboten", other: "Modelle angeboten" }),
    context: (n: string) => `Kontext von ${n} Token`,
    latency: (ms: number) => `${ms} ms`,
  },
};
