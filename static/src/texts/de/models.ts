/** Texts of models: the hub, downloads, local files and the running model. */
import type { models as English } from "../en/models.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const models: typeof English = {
  models: {
    title: "Modelle",
    intro: "Sprachmodelle auf diesem Rechner und wo Sie weitere bekommen.",
    loadFailed: "Die Modelle konnten nicht geladen werden",

    downloads: "Downloads",
    states: {
      queued: "Wartet",
      running: "Wird heruntergeladen",
      verifying: "Wird geprüft",
      done: "Fertig",
      failed: "Fehlgeschlagen",
      cancelled: "Abgebrochen",
    },
    amount: (done: string, total: string) => `${done} von ${total}`,
    rate: (size: string) => `${size}/s`,
    left: (time: string) => `noch ${time}`,
    downloadFailed: "Download fehlgeschlagen",
    cancel: "Abbrechen",
    resume: "Fortsetzen",
    discard: "Verwerfen",

    local: "Auf diesem Rechner",
    none: "Noch keine Modelle",
    noneText:
      "Suchen Sie unten nach einem Modell und laden Sie es herunter. Dateien im Ordner models erscheinen ebenfalls hier.",
    projector: "Vision-Projektor",
    parameters: (n: string) => `${n} Parameter`,
    contextOf: (n: string) => `Kontext ${n}`,
    memory: (size: string) => `${size} Speicher`,
    remove: "Löschen",
    keep: "Behalten",
    deleteTitle: "Dieses Modell löschen?",
    deleteText: (path: string, size: string) =>
      `${path} (${size}) wird vom Datenträger gelöscht. Sie können es erneut herunterladen.`,

    run: "Hier ausführen",
    runTitle: (name: string) => `${name} ausführen`,
    start: "Starten",
    stop: "Beenden",
    context: "Kontextgröße in Token",
    contextHint: (n: string) => `Das Modell unterstützt bis zu ${n}. Ein größerer Kontext braucht mehr Speicher.`,
    contextBad: "Geben Sie eine ganze Zahl ab 256 ein",
    layers: "GPU-Schichten",
    layersHint: "Leer lassen, damit llama.cpp entscheidet.",
    layersOf: (n: number) => `Das Modell hat ${n}.`,
    layersBad: "Geben Sie eine ganze Zahl ein",
    idle: "Bei Inaktivität beenden (Minuten)",
    idleHint: "Der nächste Chat startet es wieder. 0 beendet es nie.",
    idleBad: "Geben Sie eine ganze Zahl bis 10.080 ein",
    activate: "Dieses Modell für Chats verwenden",
    noProgram: "llama-server wurde nicht gefunden",
    byHand: "Oder führen Sie das Modell selbst mit diesem Befehl aus und fügen Sie es unter Verbindungen hinzu:",
    runFailed: "Das Modell wurde unerwartet beendet",
    log: "Letzte Ausgabe",
    runnerStates: { stopped: "Beendet", starting: "Startet", running: "Läuft", failed: "Fehlgeschlagen" },

    search: "Modelle suchen",
    query: "Name",
    queryExample: "Zum Beispiel qwen 4b",
    format: "Format",
    find: "Suchen",
    hubNote: "Ihre Suchbegriffe werden an den Modell-Hub gesendet.",
    searchFailed: "Suche fehlgeschlagen",
    foundCount: (n: number) => count(n, { one: "Modell gefunden", other: "Modelle gefunden" }),
    nothingFound: "Kein Modell im Hub passt zu diesem Namen und Format.",
    more: "Mehr anzeigen",
    gated: "Zugangsbeschränkt",
    gatedText:
      "Der Eigentümer steuert den Zugriff. Akzeptieren Sie die Bedingungen im Hub und setzen Sie hub_token_file auf eine Datei mit Ihrem Token.",
    downloadCount: (n: string) => `${n} Downloads pro Monat`,
    updated: (day: string) => `aktualisiert am ${day}`,
    page: "Im Hub ansehen",
    codeText:
      "Zu diesem Modell gehört Programmcode. Parlor lädt ihn nicht herunter, das Modell braucht ihn aber vielleicht.",
    projectors: "Vision-Projektoren",
    projectorsText: "Laden Sie einen herunter, damit das Modell Bilder versteht.",
    fileStates: { here: "Heruntergeladen", coming: "Wird heruntergeladen" },
    showFiles: "Dateien anzeigen",
    hideFiles: "Dateien ausblenden",
    filesFailed: "Die Dateien konnten nicht aufgelistet werden",
    noFiles: "Keine Dateien in diesem Format.",
    shards: (n: number) => count(n, { one: "Teil", other: "Teile" }),
    download: "Herunterladen",
    downloadSize: (size: string) => `${size} herunterladen`,
    started: (name: string) => `${name} wird heruntergeladen`,
  },
};
