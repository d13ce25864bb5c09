/** Texts of speech: the server, voices and samples. */
import type { speech as English } from "../en/speech.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const speech: typeof English = {
  voice: {
    title: "Stimme",
    intro: "Lassen Sie Nachrichten von Ihrem eigenen Sprachserver vorlesen.",
    loadFailed: "Die Stimmeinstellungen konnten nicht geladen werden",

    bar: "Vorlesen",
    phases: { preparing: "Warten auf Audio", speaking: "Wird vorgelesen", paused: "Pausiert" },
    pause: "Pausieren",
    resume: "Fortsetzen",
    stop: "Stoppen",

    server: "Sprachserver",
    url: "URL",
    urlHint: "Ein Server mit der Sprach-API von OpenAI, etwa http://localhost:8880/v1.",
    keyHint: "Nur wenn der Server einen verlangt.",
    model: "Modell",
    modelHint: "Leer lassen, um den Standard des Servers zu verwenden.",
    modelOffered: (n: number) => count(n, { one: "Modell verfügbar", other: "Modelle verfügbar" }),
    format: "Format",
    formatHint: "MP3 wird schon abgespielt, bevor es vollständig geladen ist.",
    formats: {
      mp3: "MP3",
      opus: "Opus",
      aac: "AAC",
      flac: "FLAC",
      wav: "WAV",
      pcm: "PCM (ohne Header)",
    },
    saved: "Sprachserver gespeichert",
    saveFailed: "Der Sprachserver konnte nicht gespeichert werden",
    try: "Speichern und testen",
    trying: "Wird getestet",
    sentence: "Guten Abend. So klinge ich.",
    trial: {
      good: "Der Sprachserver funktioniert",
      bad: "Test fehlgeschlagen",
      firstSound: (ms: string) => `Erster Ton nach ${ms} ms`,
      models: (n: number) => count(n, { one: "Modell", other: "Modelle" }),
      noModels: "Er listet seine Modelle nicht auf",
      voices: {
        upstream: (n: number) => count(n, { one: "Stimme vom Server", other: "Stimmen vom Server" }),
        files: (n: number) => count(n, { one: "Stimme aus Ihrer Bibliothek", other: "Stimmen aus Ihrer Bibliothek" }),
        catalogue: (n: number) =>
          n === 0
            ? "Der Server listet seine Stimmen nicht auf. Geben Sie eine mit Namen ein."
            : `Der Server listet seine Stimmen nicht auf. Für dieses Modell sind ${n} bekannt.`,
      },
    },

    sound: "Stimme und Wiedergabe",
    voice: "Stimme",
    serverVoice: "Standard des Servers",
    sources: { upstream: "Stimmen des Servers", files: "Ihre Bibliothek", catalogue: "Für dieses Modell bekannt" },
    other: "Ein anderer Name",
    otherName: "Name der Stimme",
    otherHint: "Der Name, den Ihr Sprachserver verwendet.",
    hear: (what: string) => `Anhören: ${what}`,
    speed: "Tempo",
    times: (n: string) => `${n}×`,
    quoted: "Stimme für Dialog",
    quotedHint: "Für Text in Anführungszeichen, sofern die Figur keine Stimme hat.",
    sameAsAbove: "Wie oben",
    narration: "Erzählstimme",
    narrationHint: "Für Text außerhalb von Anführungszeichen.",
    speakerVoice: "Stimme des Sprechers",
    auto: "Antworten automatisch vorlesen",
    autoHint:
      "Auf dem Gerät, das die Antwort angefordert hat. Das Vorlesen beginnt, während der Rest noch geschrieben wird.",

    character: "Stimme beim Vorlesen",
    characterHint:
      "Wird in der Karte gespeichert. Stimmen hängen vom Sprachserver ab; ein anderer hat diese vielleicht nicht.",
    noCharacterVoice: "Stimme aus den Einstellungen",

    library: {
      title: "Stimmenbibliothek",
      intro:
        "Manche Server können mit der Stimme einer Probe sprechen. Am besten sind fünf bis fünfzehn Sekunden einer einzelnen, klaren Stimme. Verwenden Sie Stimmen nur mit Erlaubnis.",
      loadFailed: "Die Stimmproben konnten nicht geladen werden",
      record: "Aufnehmen",
      upload: "Hochladen",
      fetch: "Von einer URL",
      addFailed: "Die Probe konnte nicht hinzugefügt werden",
      imports: "Wird heruntergeladen",
      empty: "Noch keine Proben",
      emptyText: "Nehmen Sie Ihre Stimme auf oder laden Sie eine Aufnahme hoch.",
      hear: (name: string) => `${name} abspielen`,
      stopHearing: (name: string) => `${name} stoppen`,
      more: (name: string) => `Weitere Aktionen für ${name}`,
      rename: "Umbenennen",
      remove: "Löschen",
      removed: (name: string) => `${name} gelöscht`,
      name: "Name",
      nameMissing: "Geben Sie einen Namen ein",

      fetchTitle: "Probe von einer URL hinzufügen",
      url: "URL der Aufnahme",
      urlHint: "Eine Audiodatei oder eine Seite mit Video oder Ton. Ihr Server lädt sie herunter.",
      urlBad: "Geben Sie eine URL ein, die mit http:// oder https:// beginnt",
      from: "Von",
      to: "Bis",
      pieceHint: "Minuten und Sekunden. Leer lassen, um den Anfang der Aufnahme zu verwenden.",
      pieceBad: "Geben Sie Zeiten wie 1:15 ein. Das Ende muss nach dem Anfang liegen.",
      fetchStart: "Probe hinzufügen",
      fetched: (name: string) => `${name} zur Bibliothek hinzugefügt`,
      fetchFailed: "Die Probe konnte nicht hinzugefügt werden",

      recordTitle: "Probe aufnehmen",
      recordHint:
        "Lesen Sie an einem ruhigen Ort ein paar Sätze in der gewünschten Stimme. Die Aufnahme endet nach zwei Minuten.",
      recordStart: "Aufnahme starten",
      recordStop: "Aufnahme beenden",
      recordAgain: "Erneut aufnehmen",
      recording: "Aufnahme läuft",
      recorded: "Aufgenommen",
      notRecording: "Noch keine Aufnahme",
      recordingName: (time: string) => `Aufnahme ${time}`,
      preview: "Aufnahme anhören",
      microphoneRefused:
        "Ihr Browser hat das Mikrofon blockiert. Erlauben Sie es für diese Seite in den Browsereinstellungen.",
      microphoneMissing: "Kein Mikrofon verfügbar. Browser erlauben es nur über HTTPS oder auf localhost.",
    },
  },
};
