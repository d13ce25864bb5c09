/** Texts of the connection form, the connection test and what helps after a failed reply. */
import type { connectionForm as English } from "../en/connection_form.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const connectionForm: typeof English = {
  form: {
    nearby: "Auf diesem Rechner gefunden",
    byHand: "Anderer Server oder Dienst",
    presets: "Vorschläge",
    keyNeeded:
      "Dieser Dienst verlangt einen API-Schlüssel. Er wird verschlüsselt gespeichert und nie wieder angezeigt.",
    keyShow: "Schlüssel anzeigen",
    keyHide: "Schlüssel verbergen",
    keyExposed:
      "Diese URL ist unverschlüsselt, daher können andere im Netz den Schlüssel lesen. Verwenden Sie https://, wenn der Server es unterstützt.",
    modelOffered: (n: number) =>
      `Leer lassen, um das erste von ${count(n, { one: "Modell", other: "Modellen" })} zu verwenden.`,
    contextKnown: (tokens: string) => `In Token. Leer lassen, um die vom Server gemeldeten ${tokens} zu verwenden.`,
    addTitle: "Verbindung hinzufügen",
    editTitle: "Verbindung bearbeiten",
    missing: "Diese Verbindung gibt es nicht",
    name: "Name",
    kind: "Typ",
    url: "URL",
    urlHint: "Zum Beispiel http://127.0.0.1:8080. Fehlt /v1, wird es ergänzt.",
    key: "API-Schlüssel",
    keyHint: "Nur wenn der Server einen verlangt. Er wird verschlüsselt gespeichert und nie wieder angezeigt.",
    keySaved: "Ein Schlüssel ist gespeichert. Leer lassen, um ihn zu verwenden.",
    keyMoved:
      "Der gespeicherte Schlüssel gehört zu einer anderen URL und wird nicht verwendet. Geben Sie einen Schlüssel ein, wenn der neue Server einen verlangt.",
    keyClear: "Gespeicherten Schlüssel entfernen",
    keyCleared: "Schlüssel entfernt",
    model: "Modell",
    modelHint: "Leer lassen, um das erste Modell des Servers zu verwenden.",
    context: "Kontextgröße",
    contextHint: "In Token. Leer lassen, um den Server zu fragen.",
    contextBad: "Geben Sie eine ganze Zahl von Token ein, etwa 8192",
    urlBad: "Geben Sie eine URL ein, die mit http:// oder https:// beginnt",
    save: "Speichern",
    saveAndUse: "Speichern und verwenden",
    saveFailed: "Die Verbindung konnte nicht gespeichert werden",
    more: "Mehr",
    kindHint: "Wie Parlor mit dem Server spricht.",
    urlHintOllama: "Zum Beispiel http://127.0.0.1:11434.",
    contextOllama: "Größter Kontext",
    contextHintOllama:
      "In Token. Parlor fordert so viel an, wie ein Chat braucht, höchstens so viel. Leer lassen für das Maximum des Modells.",
    server: "Server-Software",
    serverHint: "Bestimmt, welche Einstellungen unter welchen Namen gesendet werden.",
    serverAuto: (title: string | undefined) => title ? `Automatisch (${title})` : "Automatisch",
    headers: "Zusätzliche Header",
    headersHint: "Werden mit jeder Anfrage gesendet. Werte werden verschlüsselt gespeichert und nie wieder angezeigt.",
    headerName: "Name des Headers",
    headerValue: "Wert",
    headerSaved: "Gespeichert. Tippen zum Ersetzen.",
    headerNameBad: "Geben Sie den Namen eines Headers ein, etwa X-Title",
    headerValueBad: "Geben Sie einen einzeiligen Wert ein",
    headersMoved:
      "Die gespeicherten Werte der Header gehören zu einer anderen URL und werden nicht gesendet. Geben Sie sie neu ein.",
    addHeader: "Header hinzufügen",
    removeHeader: (name: string) => `Header ${name} entfernen`,
    extraBody: "Zusätzliche Felder",
    extraBodyHint:
      "Ein JSON-Objekt, das jeder Chat-Anfrage hinzugefügt wird. Einstellungen des Chats und seines Presets haben Vorrang.",
    extraBodyBad: (problem: string) => `Kein gültiges JSON: ${problem}`,
    extraBodyNoObject: 'Geben Sie ein JSON-Objekt ein, etwa {"top_k": 40}',
    testFailed: "Der Test konnte nicht ausgeführt werden",
  },

  connectionTest: {
    good: "Die Verbindung funktioniert",
    bad: "Die Verbindung funktioniert nicht",
    reachable: "Server erreichbar",
    unreachable: "Server nicht erreichbar",
    authorized: "Zugriff gewährt",
    unauthorized: "Zugriff verweigert",
    models: (n: number) => count(n, { one: "Modell verfügbar", other: "Modelle verfügbar" }),
    context: (n: string) => `Kontextgröße: ${n} Token`,
    latency: (ms: number) => `${ms} ms`,
  },

  connectionCard: {
    suggestOllama:
      "Dieser Server ist Ollama. Über dessen eigene API legt Parlor die Kontextgröße fest, damit kein Teil eines Chats stillschweigend wegfällt.",
    switchToOllama: "Zu Ollamas API wechseln",
    switched: (name: string) => `„${name}“ verwendet jetzt Ollamas API`,
    refused: (n: number) =>
      count(n, { one: "Einstellung vom Server abgelehnt", other: "Einstellungen vom Server abgelehnt" }),
    refusedHint: "Werden diesen Modellen vorerst nicht gesendet.",
    refusedUntil: (date: string) => `bis ${date}`,
    tryAgain: "Erneut versuchen",
    forgotten: "Diese Einstellungen werden wieder gesendet",
    server: (title: string) => `Server: ${title}`,
    answers: (model: string) => `Erstes Modell des Servers (${model})`,
    headers: (names: string) => `Zusätzliche Header: ${names}`,
    notices: {
      model_spills:
        "Das Modell passt nicht in den Grafikspeicher. Ein Teil läuft im Hauptspeicher, daher kommen Antworten langsam.",
    },
  },

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
