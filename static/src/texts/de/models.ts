/** Models: the hub, downloads, those on disk, the one that runs. */
import type { models as English } from "../en/models.ts";
import { counter } from "../plural.ts";

const count = counter("de");

/** German. */
export const models: typeof English = {
  models: {
    title: "Modelle",
    intro: "Sprachmodelle auf diesem Rechner, und woher weitere kommen.",
    loadFailed: "Die Modelle konnten nicht geladen werden",

    downloads: "Wird geladen",
    states: {
      queued: "Wartet",
      running: "Lädt",
      verifying: "Wird geprüft",
      done: "Fertig",
      failed: "Fehlgeschlagen",
      cancelled: "Abgebrochen",
    },
    amount: (done: string, total: string) => `${done} von ${total}`,
    rate: (size: string) => `${size} je Sekunde`,
    left: (time: string) => `noch ${time}`,
    downloadFailed: "Das Laden ist stehen geblieben",
    cancel: "Abbrechen",
    resume: "Fortsetzen",
    discard: "Verwerfen",

    local: "Auf diesem Rechner",
    none: "Noch kein Modell",
    noneText:
      "Suchen Sie unten eines und laden Sie es. Auch eine Datei, die Sie in den Ordner models legen, steht dann hier.",
    projector: "Bildteil",
    parameters: (n: string) => `${n} Parameter`,
    contextOf: (n: string) => `Kontext ${n}`,
    memory: (size: string) => `${size} Speicher`,
    remove: "Löschen",
    keep: "Behalten",
    deleteTitle: "Dieses Modell löschen",
    deleteText: (path: string, size: string) =>
      `${path} (${size}) verschwindet von der Festplatte. Es lässt sich wieder laden.`,

    run: "Hier ausführen",
    runTitle: (name: string) => `${name} ausführen`,
    start: "Starten",
    stop: "Beenden",
    context: "Kontextgröße in Token",
    contextHint: (n: string) => `Das Modell ist für bis zu ${n} gemacht. Mehr braucht mehr Speicher.`,
    contextBad: "Eine ganze Zahl ab 256",
    layers: "Schichten auf der Grafikkarte",
    layersHint: "Bleibt das Feld leer, entscheidet llama.cpp.",
    layersOf: (n: number) => `Das Modell hat ${n}.`,
    layersBad: "Eine ganze Zahl",
    idle: "Beenden nach Minuten ohne Chat",
    idleHint: "Der nächste Chat startet es wieder. 0 beendet es nie.",
    idleBad: "Eine ganze Zahl bis 10.080",
    activate: "Chats ab jetzt damit beantworten",
    noProgram: "llama-server wurde nicht gefunden",
    byHand: "Oder führen Sie das Modell selbst mit diesem Befehl aus und tragen es unter Verbindungen ein:",
    runFailed: "Das Modell endete unerwartet",
    log: "Was es zuletzt gemeldet hat",
    runnerStates: { stopped: "Beendet", starting: "Startet", running: "Läuft", failed: "Fehlgeschlagen" },

    search: "Ein Modell finden",
    query: "Bezeichnung",
    queryExample: "etwa qwen 4b",
    format: "Dateiformat",
    find: "Suchen",
    hubNote: "Ihre Suchwörter gehen an den Modell-Hub.",
    searchFailed: "Die Suche ist fehlgeschlagen",
    foundCount: (n: number) => count(n, { one: "Modell gefunden", other: "Modelle gefunden" }),
    nothingFound: "Der Hub kennt unter diesem Namen nichts in diesem Format.",
    more: "Mehr zeigen",
    gated: "Zugang auf Anfrage",
    gatedText:
      "Der Besitzer vergibt den Zugang. Nehmen Sie im Hub die Bedingungen an und nennen Sie dann als hub_token_file eine Datei mit Ihrem Token.",
    downloadCount: (n: string) => `${n} Downloads im Monat`,
    updated: (day: string) => `geändert am ${day}`,
    page: "Seite auf dem Hub",
    codeText: "Es liegen Programme bei. Sie werden nicht heruntergeladen; das Modell braucht sie vielleicht.",
    projectors: "Bildteile",
    projectorsText: "Liegt einer davon daneben, versteht das Modell Bilder.",
    fileStates: { here: "Auf diesem Rechner", coming: "Wird heruntergeladen" },
    showFiles: "Dateien zeigen",
    filesFailed: "Die Dateien konnten nicht aufgelistet werden",
    noFiles: "In diesem Format gibt es hier nichts.",
    shards: (n: number) => count(n, { one: "Teil", other: "Teile" }),
    download: "Laden",
    downloadSize: (size: string) => `${size} laden`,
    started: (name: string) => `${name} wird geladen`,
  },
};
