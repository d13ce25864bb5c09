/** Speech: the server that speaks, the voices, the library of samples. */
import type { voice as English } from "../en/voice.ts";
import { counter } from "../plural.ts";

const count = counter("de");

/** German. */
export const voice: typeof English = {
  voice: {
    title: "Stimme",
    intro: "Nachrichten liest ein eigener Sprachserver vor.",
    loadFailed: "Die Einstellungen der Stimme konnten nicht geladen werden",

    bar: "Vorlesen",
    phases: { preparing: "Wartet auf die Stimme", speaking: "Liest vor", paused: "Angehalten" },
    pause: "Anhalten",
    resume: "Weiterlesen",
    stop: "Beenden",

    server: "Sprachserver",
    url: "Adresse",
    urlHint: "Eines Servers mit der Sprachschnittstelle von OpenAI, etwa http://localhost:8880/v1.",
    keyHint: "Nur für Server, die einen verlangen.",
    model: "Modell",
    modelHint: "Leer entscheidet der Server.",
    modelOffered: (n: number) => count(n, { one: "Modell zur Auswahl", other: "Modelle zur Auswahl" }),
    format: "Format",
    formatHint: "MP3 klingt schon, bevor alles da ist.",
    formats: {
      mp3: "MP3",
      opus: "Opus",
      aac: "AAC",
      flac: "FLAC",
      wav: "WAV",
      pcm: "PCM ohne Kopf",
    },
    saved: "Sprachserver gespeichert",
    saveFailed: "Der Sprachserver konnte nicht gespeichert werden",
    try: "Speichern und prüfen",
    trying: "Wird geprüft",
    sentence: "Guten Abend. So klinge ich.",
    trial: {
      good: "Der Server spricht",
      bad: "Die Prüfung ist fehlgeschlagen",
      firstSound: (ms: string) => `Erster Ton nach ${ms} ms`,
      models: (n: number) => count(n, { one: "Modell", other: "Modelle" }),
      noModels: "Er nennt seine Modelle nicht",
      voices: {
        upstream: (n: number) => count(n, { one: "Stimme vom Server", other: "Stimmen vom Server" }),
        files: (n: number) => count(n, { one: "Stimme aus Ihrer Sammlung", other: "Stimmen aus Ihrer Sammlung" }),
        catalogue: (n: number) =>
          n === 0
            ? "Der Server nennt seine Stimmen nicht; geben Sie eine mit ihrem Namen ein."
            : `Der Server nennt seine Stimmen nicht; für dieses Modell sind ${n} bekannt.`,
      },
    },

    sound: "Wie es klingt",
    voice: "Stimme",
    serverVoice: "Wie der Server es vorsieht",
    sources: { upstream: "Stimmen des Servers", files: "Ihre Sammlung", catalogue: "Für dieses Modell bekannt" },
    other: "Ein anderer Name",
    otherName: "Name der Stimme",
    otherHint: "Wie der Sprachserver sie kennt.",
    hear: (what: string) => `Anhören: ${what}`,
    speed: "Tempo",
    times: (n: string) => `${n}-fach`,
    quoted: "Stimme für Dialog",
    quotedHint: "Für Text in Anführungszeichen, wo die Figur keine eigene Stimme hat.",
    asSet: "Die Stimme oben",
    narration: "Stimme für Erzählung",
    narrationHint: "Für Text außerhalb von Anführungszeichen.",
    asSpeaker: "Die Stimme dessen, der spricht",
    auto: "Antworten vorlesen, während sie kommen",
    autoHint: "Auf dem Gerät, das gefragt hat. Der erste Satz klingt, während der Rest noch geschrieben wird.",

    character: "Stimme beim Vorlesen",
    characterHint:
      "Steht in der Karte. Stimmen gehören zu Ihrem Sprachserver; auf einem anderen sagt dieser Name vielleicht nichts.",
    noCharacterVoice: "Die Stimme der Einstellungen",

    library: {
      title: "Stimmensammlung",
      intro:
        "Proben, in deren Stimme manche Server sprechen können. Am besten fünf bis fünfzehn Sekunden einer klaren Stimme. Verwenden Sie Stimmen nur mit Erlaubnis.",
      loadFailed: "Die Proben konnten nicht geladen werden",
      record: "Aufnehmen",
      upload: "Hochladen",
      fetch: "Von einer Adresse",
      addFailed: "Die Probe konnte nicht aufgenommen werden",
      imports: "Wird geholt",
      empty: "Noch keine Proben",
      emptyText: "Nehmen Sie Ihre Stimme auf oder laden Sie eine Aufnahme hoch.",
      hear: (name: string) => `${name} abspielen`,
      stopHearing: (name: string) => `${name} beenden`,
      more: (name: string) => `Mehr zu ${name}`,
      rename: "Umbenennen",
      remove: "Löschen",
      removed: (name: string) => `${name} gelöscht`,
      name: "Name",
      nameMissing: "Ein Name fehlt",

      fetchTitle: "Probe von einer Adresse",
      url: "Adresse der Aufnahme",
      urlHint: "Eine Audiodatei oder eine Seite mit Video oder Ton. Die Anfrage geht von Ihrem Server dorthin.",
      urlBad: "Eine Adresse, die mit http:// oder https:// beginnt",
      from: "Von",
      to: "Bis",
      pieceHint: "Minuten und Sekunden der Aufnahme. Leer nimmt ihren Anfang.",
      pieceBad: "Schreiben Sie Zeiten wie 1:15; das Ende liegt hinter dem Anfang.",
      fetchStart: "Holen",
      fetched: (name: string) => `${name} ist in der Sammlung`,
      fetchFailed: "Die Probe konnte nicht geholt werden",

      recordTitle: "Probe aufnehmen",
      recordHint:
        "Lesen Sie ein paar Sätze in der Stimme, die Sie hören möchten, in einem ruhigen Raum. Nach zwei Minuten endet die Aufnahme von selbst.",
      recordStart: "Aufnahme beginnen",
      recordStop: "Aufnahme beenden",
      recordAgain: "Noch einmal aufnehmen",
      recording: "Aufnahme läuft",
      recorded: "Aufgenommen",
      notRecording: "Noch keine Aufnahme",
      recordingName: (time: string) => `Aufnahme ${time}`,
      preview: "Die Aufnahme",
      microphoneRefused:
        "Der Browser hat das Mikrofon nicht erlaubt. Erlauben Sie es dieser Seite in seinen Einstellungen.",
      microphoneMissing: "Für diese Seite gibt es kein Mikrofon. Browser geben es nur über HTTPS oder auf localhost.",
    },
  },
};
